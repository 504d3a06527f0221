"""Columns of a static partition: filled in where the input lacks them, and otherwise compared row by row."""

from collections.abc import Mapping
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.partitions.path import PartitionValue
from tallymark.engine.partitions.static import StaticPartition

_TYPES: Mapping[type, pa.DataType] = {bool: pa.bool_(), int: pa.int64(), str: pa.string(), date: pa.date32()}
"""Arrow types by the type of the value. A decimal is not included: it does not show the digits of other values."""


def missing_columns(
    schema: pa.Schema, given: Mapping[str, object], *, table: pa.Schema | None
) -> "list[pa.Field[Any]]":
    """Return the static columns that the input's schema lacks, as the table has them, or as they are to be in a new
    one.

    Raises:
        InvalidRequest: a new column whose value does not determine its type.
    """
    names = [name for name in given if name not in schema.names]
    return [_new_field(name, given[name]) if table is None else table.field(name) for name in names]


def _new_field(name: str, value: object) -> "pa.Field[Any]":
    type_ = type_of_value(value)
    if type_ is None:
        known = ", ".join(type_.__name__ for type_ in _TYPES)
        raise InvalidRequest(
            f"partition: {name!r} is a new column, and {value!r} does not determine its type (one of type {known} "
            "does); add the column to the input"
        )
    return pa.field(name, type_)


def type_of_value(value: object) -> pa.DataType | None:
    """Return the type of a new table's column from its static value; None where the value does not determine it."""
    return _TYPES.get(type(value))


def filled(batch: pa.RecordBatch, partition: StaticPartition, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with the static columns that it lacks appended, in the types of ``schema``."""
    for name, value in zip(partition.columns, partition.values, strict=True):
        if name not in batch.schema.names:
            field = schema.field(name)
            batch = batch.append_column(field, pa.repeat(pa.scalar(value, field.type), batch.num_rows))
    return batch


def check_static(rows: pa.RecordBatch, partition: StaticPartition) -> None:
    """Check that every row, of the table's schema, has the static values. Raises InvalidRequest, naming another
    value.
    """
    for name, value in zip(partition.columns, partition.values, strict=True):
        column = rows.column(name)
        first = pc.index(_differs(column, value), True).as_py()
        if first >= 0:
            raise InvalidRequest(
                f"a row has {name}={column[first].as_py()!r}, and this write is for partition={partition} alone; "
                "drop such rows, or write them with another partition"
            )


def _differs(column: "pa.Array[Any]", value: PartitionValue) -> "pa.Array[Any]":
    if value is None:
        return column.is_valid()
    return pc.not_equal(column, pa.scalar(value, column.type)).fill_null(True)
