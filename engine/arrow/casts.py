"""Lossless casts between Arrow types.

The decision depends on the types, not on the values of a batch, so that a job does not fail half way because of one
large number. Times are the exception: pandas makes nanoseconds of all of them, so their cast checks each value.
"""

from typing import Any

import pyarrow as pa
import pyarrow.types as arrow_types

_LISTS = (pa.ListType, pa.LargeListType)


def is_lossless(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether every value of ``source`` has an equal in ``target``; for times, whether the cast may be tried."""
    if source.equals(target) or arrow_types.is_null(source):
        return True
    if arrow_types.is_dictionary(source):
        return is_lossless(source.value_type, target)
    if arrow_types.is_dictionary(target):
        return is_lossless(source, target.value_type)
    if arrow_types.is_nested(source) or arrow_types.is_nested(target):
        return _is_lossless_nested(source, target)
    return (
        (is_string(source) and is_string(target))
        or (_is_binary(source) and _is_binary(target))
        or _is_lossless_number(source, target)
        or _is_lossless_time(source, target)
    )


def is_string(kind: pa.DataType) -> bool:
    return arrow_types.is_string(kind) or arrow_types.is_large_string(kind) or arrow_types.is_string_view(kind)


def _is_binary(kind: pa.DataType) -> bool:
    return arrow_types.is_binary(kind) or arrow_types.is_large_binary(kind) or arrow_types.is_binary_view(kind)


def _is_lossless_number(source: pa.DataType, target: pa.DataType) -> bool:
    if arrow_types.is_decimal(target):
        digits, scale = _digits(source)
        return digits is not None and scale <= target.scale and digits - scale <= target.precision - target.scale
    if arrow_types.is_floating(target):
        mantissa = {16: 11, 32: 24, 64: 53}
        if arrow_types.is_floating(source):
            return source.bit_width <= target.bit_width
        return arrow_types.is_integer(source) and source.bit_width <= mantissa[target.bit_width]
    if not (arrow_types.is_integer(source) and arrow_types.is_integer(target)):
        return False
    if arrow_types.is_signed_integer(source) == arrow_types.is_signed_integer(target):
        return source.bit_width <= target.bit_width
    return arrow_types.is_signed_integer(target) and source.bit_width < target.bit_width


def _digits(kind: pa.DataType) -> tuple[int | None, int]:
    """Return the decimal digits that every value of a type fits in, and how many of them are after the point."""
    if arrow_types.is_decimal(kind):
        return kind.precision, kind.scale
    if arrow_types.is_integer(kind):
        return {8: 3, 16: 5, 32: 10, 64: 19 + arrow_types.is_unsigned_integer(kind)}[kind.bit_width], 0
    return None, 0


def _is_lossless_time(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether both are times of one meaning. Units may differ: the cast itself refuses a value that it would
    change.
    """
    if arrow_types.is_timestamp(source) and arrow_types.is_timestamp(target):
        return (source.tz is None) == (target.tz is None)
    return (arrow_types.is_time(source) and arrow_types.is_time(target)) or (
        arrow_types.is_duration(source) and arrow_types.is_duration(target)
    )


def _is_lossless_nested(source: pa.DataType, target: pa.DataType) -> bool:
    if arrow_types.is_map(source) and arrow_types.is_map(target):
        return is_lossless(source.key_type, target.key_type) and _is_lossless_field(
            source.item_field, target.item_field
        )
    if isinstance(source, _LISTS) and isinstance(target, _LISTS):
        return _is_lossless_field(source.value_field, target.value_field)
    if arrow_types.is_struct(source) and arrow_types.is_struct(target):
        return [field.name for field in source] == [field.name for field in target] and all(
            map(_is_lossless_field, source, target)
        )
    return False


def _is_lossless_field(source: "pa.Field[Any]", target: "pa.Field[Any]") -> bool:
    return (target.nullable or not source.nullable) and is_lossless(source.type, target.type)
