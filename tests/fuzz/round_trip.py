"""Decoded bytes are encoded and decoded again. Only targets import this: the engine is instrumented by then."""

from collections.abc import Callable
from typing import Any

from tallymark.engine.errors import CorruptObject


def comes_back(
    data: bytes,
    decode: Callable[[bytes], Any],
    encode: Callable[[Any], bytes],
    *,
    refused: type[Exception] | tuple[type[Exception], ...] = CorruptObject,
) -> Any:
    """Return the value, which is the same after both; None where the bytes are refused."""
    try:
        value = decode(data)
    except refused:
        return None
    assert decode(encode(value)) == value
    return value
