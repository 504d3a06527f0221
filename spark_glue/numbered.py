"""Columns of a DataFrame named by position, so that no name collides with that of an added column."""

from pyspark.sql import DataFrame


def numbered(df: DataFrame) -> DataFrame:
    """Return the same rows with columns named by ``column_name``."""
    return df.toDF(*map(column_name, range(len(df.columns))))


def column_name(place: int) -> str:
    """Return the name of the column at a position, counting from 0."""
    return f"column{place}"
