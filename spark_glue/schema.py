"""Conversion between Spark's schemas and Arrow's."""

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.partitions.columns import type_of_value
from tallymark.spark_glue.versions import arrow_field

SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
"""The key under which Spark stores its own schema in Parquet footers."""


def arrow_schema(schema: StructType, partition: Mapping[str, object] | None = None) -> pa.Schema:
    """Return the Arrow schema of a DataFrame's rows, with Spark's own in its metadata, so that it is read back exactly.

    Spark's own is that of a new table: it includes the columns of a static partition that the DataFrame lacks.

    Raises:
        InvalidRequest: a column of a type that Arrow does not have.
    """
    fields = [_arrow_field(column) for column in schema]
    whole = StructType([*schema, *_added(schema, partition)])
    return pa.schema(fields, metadata={SPARK_SCHEMA: whole.json().encode("utf-8")})


def _added(schema: StructType, partition: object) -> StructType:
    """Return the static columns in the order in which the engine appends them. The engine refuses other columns."""
    given = partition if isinstance(partition, Mapping) else {}
    lacking = {name: type_of_value(given[name]) for name in given if isinstance(name, str) and name not in schema.names}
    return from_arrow_schema(pa.schema([pa.field(name, type_) for name, type_ in lacking.items() if type_ is not None]))


def _arrow_field(column: StructField) -> "pa.Field[Any]":
    try:
        return arrow_field(column)
    except Exception as error:  # Spark's own errors, of several classes in its versions
        raise InvalidRequest(
            f"column {column.name!r} ({column.dataType.simpleString()}) has no Arrow form; cast it"
        ) from error


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the schema that the table was first written with; of a table written without Spark, Spark's form of it."""
    kept = (schema.metadata or {}).get(SPARK_SCHEMA)
    if kept is None:
        return from_arrow_schema(schema, prefer_timestamp_ntz=True)
    return StructType.fromJson(json.loads(kept))
