"""Bytes in storage that say of themselves whether they are whole: what checkpoints are put in. Sans-I/O.

    "TMCP", format                  4 + 2 bytes
    CRC-32 of format and rest       4 bytes
    size before compression         8 bytes
    zstd                            the rest

all little-endian. The CRC finds damage by accident, such as a torn copy or a bad disk; it is not a signature.
"""

import struct
import zlib
from typing import Any

import msgpack
import pyarrow as pa

from tallymark.engine.errors import CorruptObject
from tallymark.engine.packed import unpack

FORMAT = 1
"""Raised when an older release would misread what a newer one writes. Fields that are added leave it as it is."""

_MAGIC = b"TMCP"
_HEAD = struct.Struct("<4sHI")
_SIZE = struct.Struct("<Q")
_ZSTD = pa.Codec("zstd", compression_level=1)
"""Higher levels take five times as long, and save nothing: most of a row is the random part of its name."""


USUAL_RATIO_MAX = 64
"""Rows are compressed to a half, and names of partitions to a twentieth."""

PIECE_BYTES = 1 << 20
"""What is inflated at once where the size is not to be expected."""


def seal(fields: dict[str, object]) -> bytes:
    packed: bytes = msgpack.packb(fields, use_bin_type=True)
    body = _SIZE.pack(len(packed)) + _ZSTD.compress(packed, asbytes=True)
    return _HEAD.pack(_MAGIC, FORMAT, _crc(FORMAT, body)) + body


def unseal(data: bytes, *, source: str) -> dict[str, Any]:
    """Return what ``seal`` was given, by this release or an earlier one.

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
    """``size`` bytes. A size that is not to be expected takes no memory before so much is there.

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
