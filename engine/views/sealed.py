"""Envelope of checkpoint objects, which shows whether they are complete. Sans-I/O.

    "TMCP", format                  4 + 2 bytes
    CRC-32 of format and rest       4 bytes
    size before compression         8 bytes
    zstd                            the rest

all little-endian. The CRC finds accidental damage, such as a torn copy or a bad disk; it is not a signature.
"""

import struct
import zlib
from typing import Any

import msgpack
import pyarrow as pa

from tallymark.engine.errors import CorruptObject
from tallymark.engine.packed import unpack

FORMAT = 1
"""Raised when an older release would misread what a newer one writes. Added fields do not change it."""

_MAGIC = b"TMCP"
_HEAD = struct.Struct("<4sHI")
_SIZE = struct.Struct("<Q")
_ZSTD = pa.Codec("zstd", compression_level=1)
"""Compression level. Higher levels take five times as long, and save nothing: most of a row is the random part of its
name.
"""


USUAL_RATIO_MAX = 64
"""Maximum expected ratio: rows are compressed to a half, and names of partitions to a twentieth."""

PIECE_BYTES = 1 << 20
"""Bytes inflated at once where the ratio is unexpected."""


def seal(fields: dict[str, object]) -> bytes:
    packed: bytes = msgpack.packb(fields, use_bin_type=True)
    body = _SIZE.pack(len(packed)) + _ZSTD.compress(packed, asbytes=True)
    return _HEAD.pack(_MAGIC, FORMAT, _crc(FORMAT, body)) + body


def unseal(data: bytes, *, source: str) -> dict[str, Any]:
    """Return the bytes that ``seal`` was given, by this release or an earlier one.

    Raises:
        CorruptObject: the bytes, named ``source``, are damaged, something else, or of a newer format.
    """
    if len(data) < _HEAD.size + _SIZE.size or data[:4] != _MAGIC:
        raise CorruptObject(f"{source} is not a part of a checkpoint")
    _, version, crc = _HEAD.unpack_from(data)
    if version > FORMAT:
        raise CorruptObject(
            f"{source} is of checkpoint format {version}, and this release reads up to {FORMAT}; install a newer one"
        )
    body = memoryview(data)[_HEAD.size :]
    if _crc(version, body) != crc:
        raise CorruptObject(f"{source} is damaged: its CRC-32 is not {crc:08x}")
    try:
        fields = unpack(_inflated(body[_SIZE.size :], _SIZE.unpack_from(body)[0]))
    except (ValueError, OSError, pa.ArrowException) as error:
        raise CorruptObject(f"{source} is not a part of a checkpoint: {error!r}") from error
    if not isinstance(fields, dict):
        raise CorruptObject(f"{source} is not a part of a checkpoint: not a map")
    return fields


def _inflated(compressed: memoryview, size: int) -> bytes:
    """Return ``size`` bytes. An unexpected size takes no memory before that much was inflated.

    Raises:
        ValueError, OSError, ArrowException: it is damaged, or of another size.
    """
    if size <= USUAL_RATIO_MAX * len(compressed):
        return bytes(_ZSTD.decompress(compressed, size, asbytes=True))
    inflated, piece = bytearray(), memoryview(bytearray(PIECE_BYTES))
    with pa.CompressedInputStream(pa.BufferReader(compressed), "zstd") as stream:
        while len(inflated) <= size and (count := stream.readinto(piece)):  # its read() leaks where it fails
            inflated += piece[:count]
    if len(inflated) != size:
        raise ValueError(f"{size} bytes were put there, and not {len(inflated)}")
    return bytes(inflated)


def _crc(version: int, body: bytes | memoryview) -> int:
    return zlib.crc32(body, version)
