"""Checkpoints: manifests, parts and the pointer. Fuzzed as they lie, and below their CRC and compression."""

import struct
import zlib
from functools import partial

import pyarrow as pa

from tallymark.engine.timeline.history_base import Decided, HistoryBase
from tallymark.engine.views.base import PartitionState
from tallymark.engine.views.checkpoint_format import (
    FORMAT,
    Manifest,
    Part,
    decode_manifest,
    decode_part,
    decode_pointer,
    encode_manifest,
    encode_part,
    encode_pointer,
)
from tests.fuzz.round_trip import comes_back

NAME = f"{3:020d}-a1"
HISTORY = HistoryBase(
    table="a1",
    position=3,
    hash=b"f" * 32,
    hash_before=b"e" * 32,
    decided=(
        Decided(1, "20260102030405006", "commit", is_replacing=True),
        Decided(3, "20260102030405007", "clean", is_replacing=False),
    ),
    txns={"etl:1": 1},
    partitions={"year=2013": 1},
    cleans={3: range(1, 3)},
    horizon=1,
    appends=((1, 100),),
)
MANIFEST = Manifest(
    name=NAME,
    table="20260102030405000",
    history=HISTORY,
    floor=1,
    states={"year=2013": PartitionState(1, 2)},
    parts=(Part("year=2013", "year=2013", f"{NAME}.0", 100, 200, 3),),
)


def seeds() -> list[bytes]:
    """How the rest is to be wrapped is the first byte: 0 not at all, 1 by head and CRC, 2 by compression, too."""
    whole = encode_manifest(MANIFEST), encode_part({"year=2013": b"rows"}), encode_pointer([NAME])
    bodies = [data[10:] for data in whole]
    packed = [pa.decompress(body[8:], struct.unpack_from("<Q", body)[0], "zstd", asbytes=True) for body in bodies]
    return [*(b"\0" + data for data in whole), *(b"\1" + body for body in bodies), *(b"\2" + data for data in packed)]


def target(data: bytes) -> bool:
    sealed = wrapped(data)
    found = (
        comes_back(sealed, partial(decode_manifest, name=NAME), encode_manifest),
        comes_back(sealed, partial(decode_part, source="here"), encode_part),
        comes_back(sealed, decode_pointer, encode_pointer),
    )
    return any(value is not None for value in found)


def wrapped(data: bytes) -> bytes:
    match data[:1]:
        case b"\1":
            return with_head(data[1:])
        case b"\2":
            packed = data[1:]
            return with_head(struct.pack("<Q", len(packed)) + pa.compress(packed, "zstd", asbytes=True))
    return data[1:]


def with_head(body: bytes) -> bytes:
    return b"TMCP" + struct.pack("<HI", FORMAT, zlib.crc32(body, FORMAT)) + body
