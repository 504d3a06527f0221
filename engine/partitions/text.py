"""Values of partition columns from a partition path, as users type it: ``year=2013/month=1``."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.types as arrow_types

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.partitions.path import NULL_PARTITION, PartitionValue
from tallymark.engine.partitions.prefix import partition_prefix


def partition_values(text: str, schema: pa.Schema, partition_by: Sequence[str]) -> dict[str, PartitionValue]:
    """Return the values that the path names, of the types of the table's columns.

    Raises:
        InvalidRequest: no partition of this table starts so, or a value is not of its column's type.
    """
    segments = partition_prefix(text, partition_by).split("/")
    columns = [schema.field(name) for name in partition_by[: len(segments)]]
    return {
        field.name: _value(segment.partition("=")[2], field)
        for segment, field in zip(segments, columns, strict=False)
        if segment
    }


def _value(escaped: str, field: "pa.Field[Any]") -> PartitionValue:
    text = unquote(escaped)
    if escaped == NULL_PARTITION:
        return None
    try:
        if arrow_types.is_boolean(field.type):
            return {"true": True, "false": False}[text]
        if arrow_types.is_integer(field.type):
            return int(text)
        if arrow_types.is_date(field.type):
            return date.fromisoformat(text)
        if arrow_types.is_decimal(field.type):
            return Decimal(text)
    except (ValueError, KeyError, InvalidOperation) as error:
        raise InvalidRequest(
            f"partition {field.name}={text!r}: the column is {field.type}; give a value of that type"
        ) from error
    return text
