"""Hash of a row that depends on its values alone, however often and wherever Spark computes it."""

from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DataType, StructType

from tallymark.spark_glue.numbered import column_name

_HASHED = (
    types.NumericType,
    types.StringType,
    types.BinaryType,
    types.BooleanType,
    types.DateType,
    types.TimestampType,
    types.TimestampNTZType,
    types.DayTimeIntervalType,
    types.YearMonthIntervalType,
)
"""Types that Spark's hash functions accept in every release. Not maps, which have no order, nor variants."""


def row_hash(df: DataFrame) -> Column:
    """Return a long of the numbered DataFrame: equal for rows that are equal in all columns that can be hashed."""
    hashed = [column_name(place) for place, field in enumerate(df.schema) if _is_hashed(field.dataType)]
    return f.xxhash64(*hashed) if hashed else f.lit(0).cast("long")


def _is_hashed(type_: DataType) -> bool:
    if isinstance(type_, ArrayType):
        return _is_hashed(type_.elementType)
    if isinstance(type_, StructType):
        return all(_is_hashed(field.dataType) for field in type_)
    return isinstance(type_, _HASHED)
