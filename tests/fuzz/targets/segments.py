"""Marker segments, and the names of files in a marker directory. The first byte says which."""

from tallymark.engine.errors import CorruptObject
from tallymark.engine.markers.segment import (
    BATCHED_TYPE,
    DIRECT_TYPE,
    SEQUENCE_BITS,
    decode_segment,
    encode_segment,
    incarnation_of,
    is_segment,
    read_marker_type,
    segment_number,
)

LINES = ("year=2013/a-0_0-1-2_20260102030405006.parquet.marker.CREATE", "b.parquet.marker.MERGE", "ö/c.marker.APPEND")


def seeds() -> list[bytes]:
    whole = encode_segment(LINES)
    lines = whole.partition(b"\n")[2]
    names = [b"\1" + name for name in (b"MARKERS1073741824", b"SERVER1024", b"MARKERS\xd9\xa3")]
    return [b"\0" + whole, b"\0" + lines, b"\3" + lines[:-9], *names, b"\2" + BATCHED_TYPE, b"\2DIRECT"]


def target(data: bytes) -> bool:
    match data[:1]:
        case b"\1":
            return is_name(data[1:].decode("utf-8", "surrogateescape"))
        case b"\2":
            return is_type(data[1:])
    return are_lines(data[1:], rewritten=data[:1] == b"\3")


def are_lines(data: bytes, *, rewritten: bool) -> bool:
    """Every line, and of a rewritten segment every finished one, is there, in its place, or the whole is refused."""
    try:
        lines = decode_segment(data, source="here", rewritten=rewritten)
    except CorruptObject:
        return False
    whole = encode_segment(lines)
    finished = data[: data.rfind(b"\n") + 1] if rewritten else data
    assert finished in (whole, whole.partition(b"\n")[2], b"\n" * rewritten)
    return True


def is_name(name: str) -> bool:
    incarnation = incarnation_of(name)
    if incarnation is None:
        assert not is_segment(name)
        return False
    assert incarnation >= 0
    if is_segment(name):
        assert segment_number(f"folder/{name}") >> SEQUENCE_BITS == incarnation
    return True


def is_type(data: bytes) -> bool:
    try:
        kind = read_marker_type(data)
    except CorruptObject:
        return False
    assert kind in (BATCHED_TYPE, DIRECT_TYPE, None)
    return True
