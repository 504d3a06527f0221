"""Columns of a DataFrame by their place, which is clear where names are odd, or differ in case alone."""

from pyspark.sql import DataFrame


def numbered(df: DataFrame) -> DataFrame:
    """The same rows; the columns are named as ``column_name`` says."""
    return df.toDF(*map(column_name, range(len(df.columns))))


def column_name(place: int) -> str:
    """That of the column at a place, counting from 0."""
    return f"column{place}"
