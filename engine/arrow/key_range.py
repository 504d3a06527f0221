"""Ranges of key columns as bytes that compare as the values do, for text, numbers, dates and times alike.

    integer, bool, date, timestamp    8 bytes, big-endian, the sign bit inverted; a timestamp in its column's unit
    decimal                           16 bytes of its unscaled value, in the same form
    text, binary                      the first 16 bytes of the value, or of its UTF-8

A bound of a longer text is not one of its values: a lower one is a prefix, an upper one is rounded up.
"""

from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

RANGE_BYTES = 16
"""Of a text: enough to distinguish files by a UUID's random part; a range takes 34 bytes."""

_NUMBER_BYTES = 8

_EXACT = Context(prec=38)
"""The process's own context may round, or refuse to."""

Range = tuple[bytes, bytes | None]
"""The least value, and the greatest; None: unbounded."""


def range_of(column: "pa.Array[Any] | pa.ChunkedArray[Any]") -> Range | None:
    """Return the range of a column without nulls, of a type that a record key may have; None where it is empty."""
    if not len(column):
        return None
    extremes: Any = pc.min_max(_plain(column))
    least, greatest = (_ordered(extremes[name], column.type) for name in ("min", "max"))
    return least[:RANGE_BYTES], _rounded_up(greatest)


def value_of(bound: bytes, type_: pa.DataType) -> Any:
    """Return the value that a bound encodes; of text and binary its bytes. None where Python has no such value."""
    if pa.types.is_decimal(type_):
        return Decimal(_whole(bound)).scaleb(-type_.scale, _EXACT)
    if not (pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_temporal(type_)):
        return bound
    plain = pa.int32() if pa.types.is_date32(type_) else pa.int64()
    try:
        return pa.scalar(_whole(bound), plain).cast(type_).as_py()
    except (ValueError, OverflowError):  # a timestamp after the year 9999
        return None


def _whole(bound: bytes) -> int:
    return int.from_bytes(bound) - (1 << (8 * len(bound) - 1))


def union(one: Range | None, other: Range | None) -> Range | None:
    """Return the range of the values of both."""
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), None if one[1] is None or other[1] is None else max(one[1], other[1])


def meet(one: Range, other: Range) -> bool:
    """Return whether a value may be in both."""
    return (other[1] is None or one[0] <= other[1]) and (one[1] is None or other[0] <= one[1])


def _plain(column: "pa.Array[Any] | pa.ChunkedArray[Any]") -> "pa.Array[Any] | pa.ChunkedArray[Any]":
    """Return dates, times and truth values as integers."""
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32())
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    return column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column


def _ordered(value: Any, type_: pa.DataType) -> bytes:
    found: Any = value.as_py()
    if isinstance(found, str):
        return found.encode()
    if isinstance(found, bytes):
        return found
    if pa.types.is_decimal(type_):
        return _number(int(found.scaleb(type_.scale, _EXACT)), RANGE_BYTES)
    return _number(found, _NUMBER_BYTES)


def _number(value: int, size: int) -> bytes:
    return (value + (1 << (8 * size - 1))).to_bytes(size)


def _rounded_up(value: bytes) -> bytes | None:
    """Return the value, or the least one of at most ``RANGE_BYTES`` that is greater if it is longer; None if there is
    none.
    """
    if len(value) <= RANGE_BYTES:
        return value
    kept = value[:RANGE_BYTES].rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
