"""Decoding of msgpack from storage, with memory in proportion to the data, whatever its headers declare.

A checked map is stored below a head::

    magic                           4 bytes
    CRC-32 of the rest              4 bytes, little-endian
    a map with the key "format"     msgpack
"""

import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import msgpack


def unpack(data: bytes) -> Any:
    """Return the value that ``msgpack.packb`` wrote; keys of maps are text.

    A few bytes may declare nested arrays, each as long as all of the data, and msgpack allocates each at its declared
    length before it reads the elements. So the data is skipped over first, which allocates nothing and takes a
    twentieth of the time: afterwards each element is known to exist.

    Raises:
        ValueError: ``msgpack.packb`` did not write the data.
    """
    unpacker = msgpack.Unpacker(max_buffer_size=max(len(data), 1))
    try:
        unpacker.feed(data)
        unpacker.skip()
        return msgpack.unpackb(data, raw=False, strict_map_key=True)
    except msgpack.ExtraData:  # its text would be all of the data
        raise ValueError("there are bytes beyond the value") from None
    except msgpack.UnpackException as error:
        raise ValueError(f"the data is cut off: {error!r}") from error


_HEAD = struct.Struct("<4sI")


def pack_checked(magic: bytes, fields: Mapping[str, object], *, default: Callable[[Any], Any] | None = None) -> bytes:
    """Return the map below a head, of which no single bit can change without ``unpack_checked`` noticing.

    ``default`` returns a plain value for one that msgpack does not know.
    """
    packed: bytes = msgpack.packb(fields, default=default)
    return _HEAD.pack(magic, zlib.crc32(packed)) + packed


def unpack_checked(magic: bytes, data: bytes) -> dict[str, Any]:
    """Return the map that ``pack_checked`` wrote.

    Raises:
        ValueError: it did not write the data, or the data was damaged.
    """
    if len(data) < _HEAD.size or not data.startswith(magic):
        raise ValueError(f"{len(data)} bytes that do not start with {magic.decode()}")
    packed = data[_HEAD.size :]
    if _HEAD.unpack_from(data)[1] != zlib.crc32(packed):
        raise ValueError("its CRC-32 does not fit")
    fields = unpack(packed)
    if isinstance(fields, dict):
        return fields
    raise ValueError("not a map")
