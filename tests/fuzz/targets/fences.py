"""Lists of names that may be fenced, which wait to be swept."""

from functools import partial

import msgpack

from tallymark.engine.instants.fencing import decode_fences
from tests.fuzz.round_trip import comes_back

PATHS = ["year=2013/a-0_0-1-2_20260102030405006.parquet", "ö.parquet", ""]


def seeds() -> list[bytes]:
    return [msgpack.packb(PATHS), msgpack.packb([])]


def target(data: bytes) -> bool:
    return comes_back(data, partial(decode_fences, source="here"), msgpack.packb) is not None
