"""What an entry of the commit log says survives its encoding, and garbage is a corrupt object."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, get_type_hints

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.errors import CorruptObject, UnsupportedTable
from tallymark.engine.timeline.entry import (
    FORMAT,
    DataFile,
    EntryPointer,
    LogEntry,
    decode_entry,
    decode_pointer,
    encode_entry,
    encode_pointer,
)
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.instant import instant_time
from tallymark.engine.timeline.scope import Scope
from tallymark.engine.timeline.summary import ChangeSummary, SizingSummary, WriteSummary
from tests.engine.timeline.entries import SIZING, SUMMARY
from tests.support.memory import taken_bytes

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
counts = st.integers(0, 2**63)
files = st.builds(DataFile, texts, texts, counts, counts, counts, counts)
instants = st.datetimes(datetime(1970, 1, 2), timezones=st.just(UTC)).map(instant_time)  # noqa: DTZ001
seconds = st.floats(0, allow_nan=False, allow_infinity=False)
paths = st.frozensets(texts, max_size=4)


def several(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(values, max_size=4).map(tuple)


def built(cls: type[Any], /, **named: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """With drawn texts and counts in the fields that are not named."""
    of_type = {str: texts, int: counts, tuple[DataFile, ...]: several(files), tuple[str, ...]: several(texts)}
    hints = get_type_hints(cls)
    return st.builds(cls, **{**{name: of_type[hint] for name, hint in hints.items() if hint in of_type}, **named})


sizings = built(SizingSummary, size_error_p95=st.none() | seconds)
summaries = built(
    WriteSummary,
    marker_mode=st.sampled_from(["batched", "direct", "mixed"]),
    seconds=seconds,
    sizing=st.none() | sizings,
    changes=st.none() | built(ChangeSummary),
)
entries = built(
    LogEntry,
    kind=st.sampled_from(["commit", "rollback", "clean"]),
    instant=instants,
    operation=st.sampled_from(["append", "overwrite", "upsert", "delete", "rollback", "clean"]),
    scope=st.none() | st.builds(Scope, st.booleans(), paths, paths),
    txn=st.none() | texts,
    summary=st.none() | summaries,
    reader_features=st.just(()),
    unknown=st.just({}),
)

ENTRY = LogEntry(
    kind="commit",
    instant="20240101000000000",
    nonce="n",
    base=3,
    operation="overwrite",
    scope=Scope(partitions=frozenset({"p=1"}), prefixes=frozenset({"q=2"})),
    added=(DataFile("p=1", "f1_0_20240101000000000.parquet", 10, 1000),),
    removed=(DataFile("p=1", "f0_0_20230101000000000.parquet", 9, 900),),
    txn="etl:7",
    request="{}",
    summary=WriteSummary.of_fields(SUMMARY),
)
LATER = ("txn", "request", "summary", "horizon", "time")
"""Fields that earlier releases did not write."""


def fields(**changes: object) -> dict[str, object]:
    return {**msgpack.unpackb(encode_entry(ENTRY)), **changes}


@given(entries)
def test_an_entry_survives_its_encoding_and_equal_ones_have_equal_bytes(entry):
    again = decode_entry(encode_entry(entry), source="log/1")
    assert again == entry
    assert encode_entry(again) == encode_entry(entry)


torn = st.integers(0, len(encode_entry(ENTRY)) - 1).map(lambda end: encode_entry(ENTRY)[:end])


@given(st.binary(max_size=200) | torn)
def test_garbage_and_a_torn_entry_are_corrupt_objects_that_name_their_source(data):
    with pytest.raises(CorruptObject, match="log/7"):
        decode_entry(data, source="log/7")


def test_an_entry_whose_arrays_declare_more_than_there_is_takes_no_memory():
    nested = b"\xdc\x0f\x00" * 1000 + bytes(1000)

    def refuse() -> None:
        for decode in (decode_entry, decode_pointer):
            with pytest.raises(CorruptObject):
                decode(nested, source="log/7")

    assert taken_bytes(refuse) < 100 * len(nested)


def test_an_entry_with_a_value_too_deep_to_be_shown_is_a_corrupt_object():
    deep = b"\x91" * 1005 + b"\x00"
    for name, decode in (("base", decode_entry), ("body", decode_pointer)):
        whole = msgpack.packb(fields())
        assert whole[0] & 0xF0 == 0x80, "a map of fewer than 16 fields"
        count = (whole[0] & 0x0F) + 1
        with pytest.raises(CorruptObject):
            decode(b"\xde" + count.to_bytes(2, "big") + whole[1:] + msgpack.packb(name) + deep, source="log/7")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | texts | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(fields())), VALUES)
def test_any_value_in_any_field_is_an_entry_or_a_corrupt_object(name, value):
    try:
        decoded = decode_entry(msgpack.packb(fields(**{name: value})), source="log/7")
    except (CorruptObject, UnsupportedTable) as error:
        assert name == "format" or isinstance(error, CorruptObject)  # noqa: PT017
        return
    assert decode_entry(encode_entry(decoded), source="log/7") == decoded


@pytest.mark.parametrize("name", sorted(set(fields()) - set(LATER)))
def test_an_entry_that_lacks_a_field_is_a_corrupt_object(name):
    rest = fields()
    del rest[name]
    with pytest.raises(CorruptObject, match="log/7"):
        decode_entry(msgpack.packb(rest), source="log/7")


def test_an_entry_of_an_earlier_release_is_read():
    earlier = {name: value for name, value in fields().items() if name not in LATER}
    entry = decode_entry(msgpack.packb(earlier), source="log/7")
    assert (entry.txn, entry.request, entry.summary, entry.horizon) == (None, "", None, 0)
    assert entry.scope == ENTRY.scope
    whole = decode_entry(msgpack.packb({**earlier, "scope": {"all": True, "partitions": []}}), source="log/7")
    assert whole.scope == Scope(is_all=True)
    assert entry.added == ENTRY.added


@pytest.mark.parametrize("version", [0, FORMAT + 1])
def test_another_format_is_refused_and_blamed_on_another_release(version):
    with pytest.raises(UnsupportedTable, match=r"log/7 is of log format .* install a newer release"):
        decode_entry(msgpack.packb(fields(format=version)), source="log/7")


@pytest.mark.parametrize(("names", "shown"), [(["bounds"], "feature bounds"), (["b", "a"], "features a, b")])
def test_an_entry_that_needs_a_feature_is_refused_by_its_name(names, shown):
    with pytest.raises(UnsupportedTable, match=f"log/7 needs of each reader the {shown}, which this release does not"):
        decode_entry(msgpack.packb(fields(reader_features=names, kind="other")), source="log/7")
    needing = decode_entry(msgpack.packb(fields(reader_features=names)), source="log/7")
    with pytest.raises(UnsupportedTable, match=f"entry 1 of the log needs of each reader the {shown}"):
        History().apply(needing)
    History().apply(replace(needing, table="another"))  # void, whatever it needs
    assert decode_entry(msgpack.packb(fields(writer_features=names)), source="log/7").writer_features == tuple(names)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "delete"},
        {"operation": "merge"},
        {"base": -1},
        {"base": True},
        {"instant": "20240101000061000"},
        {"added": [["p", "name", 1]]},
        {"added": [["p", "name", -1, 1]]},
        {"fenced": [1]},
        {"scope": {"all": True}},
        {"txn": 7},
        {"request": None},
        {"summary": {}},
        {"summary": {**SUMMARY, "marker_mode": "none"}},
        {"summary": {**SUMMARY, "puts": -1}},
        {"summary": {**SUMMARY, "sizing": []}},
        {"summary": {**SUMMARY, "sizing": {**SIZING, "lost_fills": 0.5}}},
        {"summary": {**SUMMARY, "sizing": {**SIZING, "size_error_p95": -0.1}}},
        {"summary": {**SUMMARY, "seconds": float("nan")}},
    ],
    ids=repr,
)
def test_what_no_release_wrote_is_a_corrupt_object(changes):
    with pytest.raises(CorruptObject, match="not a log entry"):
        decode_entry(msgpack.packb(fields(**changes)), source="log/7")


def test_a_newer_releases_extra_fields_are_kept_aside_and_do_not_make_entries_differ():
    known = fields()
    longer = {name: [[*file, [], None] for file in known[name]] for name in ("added", "removed")}  # type: ignore[attr-defined]
    assert all(len(file) == 8 for files in longer.values() for file in files)
    entry = decode_entry(
        msgpack.packb(
            fields(weather="fair", **longer, summary={**SUMMARY, "mood": 1, "sizing": {**SIZING, "taste": 2}})
        ),
        source="log/7",
    )
    assert entry == ENTRY
    assert entry.unknown == {"weather": "fair"}


@pytest.mark.parametrize("bounds", [[[7, b"a", None]], [[7, "a", None, 0]], [[-1, b"a", None, 0]], 3, None])
def test_bounds_that_no_writer_records_are_damage(bounds):
    added: Any = fields()["added"]
    data = msgpack.packb(fields(added=[[*added[0], bounds]]))
    with pytest.raises(CorruptObject, match="log/7"):
        decode_entry(data, source="log/7")


@given(texts, texts)
def test_a_pointer_names_its_body_and_is_no_entry_nor_an_entry_a_pointer(nonce, body):
    data = encode_pointer(replace(ENTRY, nonce=nonce), body)
    assert decode_pointer(data, source="log/7") == EntryPointer(body, ENTRY.table, ENTRY.previous, ENTRY.time_ms)
    assert decode_pointer(encode_entry(ENTRY), source="log/7") is None
    with pytest.raises(CorruptObject):
        decode_entry(data, source="log/7")


@given(st.binary(max_size=60) | VALUES.map(lambda body: msgpack.packb({"format": 1, "nonce": "n", "body": body})))
def test_garbage_is_no_pointer_or_a_corrupt_object(data):
    try:
        pointer = decode_pointer(data, source="log/7")
    except CorruptObject:
        return
    assert pointer is None or isinstance(pointer.body, str)


def test_a_data_file_knows_its_path_and_its_file_id():
    name = "id_0-1_20240101000000000.parquet"
    assert [DataFile(partition, name, 1, 1).path for partition in ("p=1", "")] == [f"p=1/{name}", name]
    assert DataFile("p=1", name, 1, 1).file_id == "id"
