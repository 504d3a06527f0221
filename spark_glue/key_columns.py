"""Partition columns of a DataFrame, as Spark groups by them and as Arrow has them."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f

from tallymark.spark_glue.numbered import column_name
from tallymark.spark_glue.schema import arrow_schema


class KeyColumns:
    """The columns that the table is partitioned by; of a static partition some, or all, may be missing."""

    def __init__(self, df: DataFrame, partition_by: Sequence[str]) -> None:
        self._names = [name for name in partition_by if name in df.columns]
        self._places = [df.columns.index(name) for name in self._names]
        self._schema = df.schema

    @property
    def columns(self) -> list[str]:
        """Their names in the numbered DataFrame."""
        return [column_name(place) for place in self._places]

    def hash(self) -> Column | None:
        """Return a long that is equal for equal values of the numbered DataFrame, null included; None without columns.

        Spark's hashes skip nulls: so that a value is null is hashed, too, or (null, 1) would equal (1, null).
        """
        parts = [part for name in self.columns for part in (f.col(name), f.isnull(name))]
        return f.xxhash64(*parts) if parts else None

    def batch(self, found: Sequence[Row]) -> pa.RecordBatch:
        """Return the columns of these rows, by their own names."""
        return pa.RecordBatch.from_arrays(list(self._arrays(found)), self._names)

    def _arrays(self, found: Sequence[Row]) -> "Iterator[pa.Array[Any]]":
        schema = arrow_schema(self._schema)
        for name, column in zip(self._names, self.columns, strict=True):
            yield pa.array([row[column] for row in found], schema.field(name).type)
