"""Spark's schemas and Arrow's."""

import json
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from tallymark.engine.errors import InvalidRequest
from tallymark.spark_glue.versions import arrow_field

SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
"""The key under which Spark keeps its own schema in Parquet footers, and finds it there."""


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of a DataFrame's rows, with Spark's own beside it, so that it comes back exactly.

    Raises:
        InvalidRequest: a column of a type that Arrow does not know.
    """
    fields = [_arrow_field(column) for column in schema]
    return pa.schema(fields, metadata={SPARK_SCHEMA: schema.json().encode("utf-8")})


def _arrow_field(column: StructField) -> "pa.Field[Any]":
    try:
        return arrow_field(column)
    except Exception as error:  # Spark's own errors, of several classes in its versions
        raise InvalidRequest(
            f"column {column.name!r} ({column.dataType.simpleString()}) has no Arrow form; cast it"
        ) from error


def spark_schema(schema: pa.Schema) -> StructType:
    """The schema that the table was first written with; of a table written without Spark, Spark's form of it."""
    kept = (schema.metadata or {}).get(SPARK_SCHEMA)
    if kept is None:
        return from_arrow_schema(schema, prefer_timestamp_ntz=True)
    return StructType.fromJson(json.loads(kept))
