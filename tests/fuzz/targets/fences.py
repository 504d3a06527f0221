"""Lists of names that may be fenced, which wait to be swept."""

import msgpack

from tallymark.engine.errors import CorruptObject
from tallymark.engine.instants.fencing import decode_fences

PATHS = ["year=2013/a-0_0-1-2_20260102030405006.parquet", "ö.parquet", ""]


def seeds() -> list[bytes]:
    return [msgpack.packb(PATHS), msgpack.packb([])]


def target(data: bytes) -> bool:
    try:
        fences = decode_fences(data, source="here")
    except CorruptObject:
        return False
    assert decode_fences(msgpack.packb(fences), source="here") == fences
    return True
