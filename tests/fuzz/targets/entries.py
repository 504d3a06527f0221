"""Entries of the commit log, and the pointers that stand for large ones."""

from contextlib import suppress
from functools import partial

from tallymark.engine.errors import CorruptObject, UnsupportedTable
from tallymark.engine.timeline.entry import (
    DataFile,
    LogEntry,
    decode_entry,
    decode_pointer,
    encode_entry,
    encode_pointer,
)
from tallymark.engine.timeline.scope import Scope
from tallymark.engine.timeline.summary import SizingSummary, WriteSummary
from tests.fuzz.round_trip import comes_back

INSTANT = "20260102030405006"

SIZING = SizingSummary(
    planned_files=2,
    planned_bytes=9,
    planned_fills=1,
    filled_files=1,
    rewritten_bytes=5,
    lost_fills=0,
    size_error_p95=0.5,
)
SUMMARY = WriteSummary(
    marker_mode="mixed", markers=3, direct_markers=1, marker_objects=2, puts=4, seconds=1.5, sizing=SIZING
)
FILES = tuple(DataFile("year=2013", f"{n}-0_0-1-2_{INSTANT}.parquet", 1, 2, 3, 4) for n in range(3))
SCOPE = Scope(partitions=frozenset(["a"]), prefixes=frozenset(["b"]))

COMMIT = LogEntry(
    kind="commit",
    instant=INSTANT,
    nonce="n",
    base=7,
    operation="overwrite",
    scope=SCOPE,
    added=FILES,
    removed=FILES[:1],
    fenced=("x/y.parquet",),
    txn="etl:1",
    request="{}",
    summary=SUMMARY,
)
CLEAN = LogEntry(kind="clean", instant=INSTANT, nonce="n", base=0, operation="clean", horizon=5)
ROLLBACK = LogEntry(kind="rollback", instant=INSTANT, nonce="n", base=1 << 40, operation="rollback")


def seeds() -> list[bytes]:
    return [*map(encode_entry, (COMMIT, CLEAN, ROLLBACK)), encode_pointer(COMMIT, ".hoodie/.tallymark/body/n")]


def target(data: bytes) -> bool:
    body = None
    with suppress(CorruptObject):
        body = decode_pointer(data, source="here")
        assert body is None or isinstance(body.body, str)
    refused = CorruptObject, UnsupportedTable
    entry = comes_back(data, partial(decode_entry, source="here"), encode_entry, refused=refused)
    return body is not None or entry is not None
