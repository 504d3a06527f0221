"""Partition paths as Hive and Spark write them: ``year=2013/month=1``.

Owns: which columns may partition a table, and the path of one combination of their values. The escaped characters are
those of Spark's ``ExternalCatalogUtils``, found by writing each of them with Spark 4.3; NUL, which Spark cannot write
at all, is escaped like its neighbours.
"""

from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as arrow_types

from tallymark.backends.contract import PATH_BYTES_MAX
from tallymark.engine.errors import InvalidRequest

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""What stands for null in a path, and therefore cannot be a value of its own."""

SEGMENT_BYTES_MAX = 255
"""The longest name that Linux file systems and HDFS take."""

PARTITION_PATH_BYTES_MAX = PATH_BYTES_MAX - 256
"""Leaves room for the marker directory before the partition path and for the file's and marker's name behind it."""

PartitionValue = str | int | bool | date | Decimal | None

_ESCAPES = {code: f"%{code:02X}" for code in (*range(0x20), *map(ord, "\"#%'*/:=?\\{[]^"), 0x7F)}

_KINDS: tuple[Callable[[pa.DataType], bool], ...] = (
    arrow_types.is_string,
    arrow_types.is_large_string,
    arrow_types.is_signed_integer,
    arrow_types.is_boolean,
    arrow_types.is_date32,
    arrow_types.is_decimal128,
)


def partition_path(columns: Sequence[str], values: Sequence[PartitionValue]) -> str:
    """The directory of the rows that have these values, below the table's base path; ``""`` without columns.

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


def check_partition_columns(schema: pa.Schema, partition_by: Sequence[str]) -> None:
    """Whether a table of this schema can be partitioned so.

    Raises:
        InvalidRequest: naming the column, the rule it breaks and the remedy.
    """
    for position, column in enumerate(partition_by):
        if column in partition_by[:position]:
            raise InvalidRequest(f"partition column {column!r} is named twice; name it once")
        _check_column(schema, column)
    if partition_by and len(partition_by) == len(schema):
        raise InvalidRequest(
            f"partition columns {', '.join(map(repr, partition_by))} are all there is; "
            "readers need a column that is not in the path: partition by fewer columns or add one"
        )


def _check_column(schema: pa.Schema, column: str) -> None:
    found = schema.get_all_field_indices(column)
    if not found:
        known = ", ".join(map(repr, schema.names))
        raise InvalidRequest(
            f"partition column {column!r} is not in the schema; top-level columns are {known} "
            "(a field inside a struct cannot partition: copy it into a column)"
        )
    if len(found) > 1:
        raise InvalidRequest(f"partition column {column!r} stands {len(found)} times in the schema; rename the others")
    if not column or column.startswith("."):
        raise InvalidRequest(f"partition column {column!r} would make a directory that readers skip; rename the column")
    kind = schema.field(column).type
    if not any(is_kind(kind) for is_kind in _KINDS):
        raise InvalidRequest(
            f"partition column {column!r} is {kind}; a partition column is a string, a signed integer, a bool, "
            f"a date32 or a decimal128: derive one from it, such as a date or a bucket number"
        )


def _segment(column: str, value: PartitionValue) -> str:
    text = _text(value)
    if text == NULL_PARTITION:
        raise InvalidRequest(f"partition column {column!r}: the value {text!r} is Hive's name for null; write null")
    segment = f"{_escaped(column)}={_escaped(text) or NULL_PARTITION}"
    if len(segment.encode()) > SEGMENT_BYTES_MAX:
        raise InvalidRequest(
            f"partition column {column!r}: {segment[:80]!r}... is longer than {SEGMENT_BYTES_MAX} bytes, "
            "the most that file systems take; partition by a shorter value, such as a hash or a prefix"
        )
    if ".marker." in segment:
        raise InvalidRequest(
            f"partition column {column!r}: {segment!r} holds '.marker.', by which markers are told from files; "
            "partition by another column or change the value"
        )
    return segment


def _text(value: PartitionValue) -> str:
    """As Spark casts the value to a string."""
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


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)
