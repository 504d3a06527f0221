"""Partition paths as Hive and Spark write them: ``year=2013/month=1``.

Owns: the path of one combination of values of the partition columns, the values out of a path, and the beginning of
paths as it is typed. The escaped characters are those of Spark's ``ExternalCatalogUtils``, found by writing each of
them with Spark 4.3; NUL, which Spark cannot write at all, is escaped like its neighbours.
"""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.types as arrow_types

from tallymark.backends.contract import PATH_BYTES_MAX
from tallymark.engine.errors import InvalidRequest

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""Text for null in a path, which therefore cannot be a value itself."""

SEGMENT_BYTES_MAX = 255
"""The longest name that Linux file systems and HDFS take."""

PARTITION_PATH_BYTES_MAX = PATH_BYTES_MAX - 256
"""Leaves room for the marker directory before the partition path and for the file's and marker's name after it."""

PartitionValue = str | int | bool | date | Decimal | None

_ESCAPES = {code: f"%{code:02X}" for code in (*range(0x20), *map(ord, "\"#%'*/:=?\\{[]^"), 0x7F)}


def partition_path(columns: Sequence[str], values: Sequence[PartitionValue]) -> str:
    """Return the directory of the rows that have these values, below the table's base path; ``""`` without columns.

    Two combinations share a path only where Hive's form makes them one: null and the empty string.

    Raises:
        InvalidRequest: a value that no path can carry: too long, Hive's name for null, or a marker's infix.
    """
    path = "/".join(_segment(column, value) for column, value in zip(columns, values, strict=True))
    if len(path.encode()) > PARTITION_PATH_BYTES_MAX:
        raise InvalidRequest(
            f"partition path {path[:80]!r}... is longer than {PARTITION_PATH_BYTES_MAX} bytes; "
            "partition by fewer or shorter values"
        )
    return path


def _segment(column: str, value: PartitionValue) -> str:
    text = _text(value)
    if text == NULL_PARTITION:
        raise InvalidRequest(f"partition column {column!r}: the value {text!r} is Hive's name for null; write null")
    segment = f"{escaped(column)}={escaped(text) or NULL_PARTITION}"
    if len(segment.encode()) > SEGMENT_BYTES_MAX:
        raise InvalidRequest(
            f"partition column {column!r}: {segment[:80]!r}... is longer than {SEGMENT_BYTES_MAX} bytes, "
            "the most that file systems take; partition by a shorter value, such as a hash or a prefix"
        )
    if ".marker." in segment:
        raise InvalidRequest(
            f"partition column {column!r}: {segment!r} holds '.marker.', which is how markers are recognized; "
            "partition by another column or change the value"
        )
    return segment


def _text(value: PartitionValue) -> str:
    """Return the value as Spark casts it to a string."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case Decimal():
            return format(value, "f")
        case date():
            return value.isoformat()
        case _:
            return str(value)


def escaped(text: str) -> str:
    """Return a column or value as it is written in a path."""
    return text.translate(_ESCAPES)


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


def partition_prefix(text: str, columns: Sequence[str]) -> str:
    """Return the prefix without slashes at its ends; ``""`` is the whole table.

    Raises:
        InvalidRequest: no partition of a table with these partition columns can be below it.
    """
    prefix = text.strip("/")
    segments = prefix.split("/") if prefix else []
    given = [segment.partition("=")[0] for segment in segments if "=" in segment]
    if given != [escaped(column) for column in columns[: len(segments)]]:
        shape = "/".join(f"{escaped(column)}=..." for column in columns)
        how = f"its partitions are {shape}; give one of these, or the beginning of some" if columns else "leave it out"
        raise InvalidRequest(f"partition {text!r}: the table is partitioned by {list(columns) or 'nothing'}; {how}")
    return prefix
