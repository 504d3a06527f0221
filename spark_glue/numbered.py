"""Columns of a DataFrame by their place, so that none bears the name of one that is added beside them."""

from pyspark.sql import DataFrame


def numbered(df: DataFrame) -> DataFrame:
    """Return the same rows; the columns are named as ``column_name`` says."""
    return df.toDF(*map(column_name, range(len(df.columns))))


def column_name(place: int) -> str:
    """Return that of the column at a place, counting from 0."""
    return f"column{place}"
