"""The bytes of a checkpoint."""

import base64
import struct
import zlib
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.errors import CorruptObject, UnsupportedTable
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.history_base import HistoryBase
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
    manifest_name,
    seal,
    unseal,
)
from tests.engine.timeline.entries import clean, commit, data_file, history_of, partitions, rollback
from tests.engine.views.histories import log_entries
from tests.support.memory import taken_bytes

NAME = manifest_name(7, "a1")
FIRST, SECOND = data_file("month=1", 1), data_file("month=1", 2)
ENTRIES = (
    commit(1, added=(FIRST,), txn="etl:1"),
    rollback(2),
    commit(3, scope=partitions("month=1"), added=(SECOND,), removed=(FIRST,)),
    commit(2, added=(data_file("month=9", 9),)),
    clean(5, horizon=3),
    commit(6, added=(data_file("månad=2", 6),)),
    commit(7),
)


def manifest_of(history: HistoryBase, *parts: Part, floor: int = 0) -> Manifest:
    states = {partition: PartitionState(at, at + 1) for partition, at in history.partitions.items()}
    return Manifest(name=NAME, table="20261121000000000", history=history, floor=floor, states=states, parts=parts)


SOME = manifest_of(history_of(ENTRIES).as_base(), Part("month=1", "månad=2", f"{NAME}.0", 100, 200, 3), floor=2)


@given(log_entries())
def test_a_manifest_holds_all_that_a_history_needs_to_begin_there(entries):
    manifest = manifest_of(history_of(entries).as_base())
    assert decode_manifest(encode_manifest(manifest), name=NAME) == manifest


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.binary()))
def test_a_part_holds_its_blocks(blocks):
    assert decode_part(encode_part(blocks), source="part") == blocks


def test_a_pointer_names_the_newest_manifest_first():
    assert decode_pointer(encode_pointer(["newest", "before"])) == ("newest", "before")


def test_fields_that_a_later_release_adds_are_left_aside():
    later = {**unseal(encode_manifest(SOME), source="it"), "colour": "blue"}
    later["parts"] = [[*part, "further"] for part in later["parts"]]
    assert decode_manifest(seal(later), name=NAME) == SOME
    assert decode_part(seal({"blocks": {"month=1": b"x"}, "colour": "blue"}), source="part") == {"month=1": b"x"}


def test_features_of_the_entries_before_it_are_kept_and_one_that_is_not_known_is_refused_by_its_name():
    history = replace(history_of([commit(1)]).as_base(), reader_features=frozenset({"bounds"}))
    assert History(history).as_base().reader_features == frozenset({"bounds"})
    with pytest.raises(UnsupportedTable, match=f"{NAME} needs of each reader the feature bounds"):
        decode_manifest(encode_manifest(manifest_of(history)), name=NAME)


GOLDEN = (
    "VE1DUAEAI/5QhoUBAAAAAAAAKLUv/WCFAFUKABQT3gASpXRhYmxlsTIwMjYxMTIxMKhwb3NpdGlvbgekaGFzaMQgRrzGpZQCQ8DZ"
    "UTvcsbRzFp0/nZ96y98jQNM4zIgeVSeraGFzaF9iZWZvcmXEIC1M/m7dVfB8WYQb4XJ5Vo5GM3b6L/M73YG6xBOPPBkkqGluc3Rh"
    "bnRzls8AR/th2SqagYKDhYaHpWtpbmRzxAYAAQQCAACldm9pZHORBKR0eG5zgaVldGw6MQGmY2xlYW5zkZMFAQSnaG9yaXpvbgOl"
    "YmVndW6SAJEAp2FwcGVuZHOSkgFkkgFkpWZsb29yAqpwYXJ0aXRpb25zkqdtb250aD0xqG3DpW5hZD0ypWZpcnN0kgEGpGxpdmWS"
    "AQaqY2hhbmdlZF9hdJICB6VwYXJ0c5GWuTctYTEuMGTMyAMJALkBrEXczlZTwGPgCXgHHpNZXvyCMA=="
)


def test_a_manifest_of_txns_voids_cleans_and_parts_is_what_was_written_also_by_the_first_release():
    """That was made by ``base64.b64encode(encode_manifest(SOME))`` of format 1; it stays as it is."""
    earlier = replace(SOME, history=replace(SOME.history, reached=()))
    assert decode_manifest(base64.b64decode(GOLDEN), name=NAME) == earlier
    assert decode_manifest(encode_manifest(SOME), name=NAME) == SOME
    assert SOME.history.txns == {"etl:1": 1}
    assert [decided.position for decided in SOME.history.decided] == [1, 2, 3, 5, 6, 7]
    assert SOME.history.cleans == {5: range(1, 4)}


def of_format(version: int, data: bytes) -> bytes:
    return data[:4] + struct.pack("<H", version) + data[6:]


read_manifest, read_part = partial(decode_manifest, name=NAME), partial(decode_part, source="part")


@pytest.mark.parametrize("read", [read_manifest, read_part, decode_pointer])
def test_a_newer_format_is_refused_with_the_remedy(read):
    with pytest.raises(CorruptObject, match=rf"checkpoint format {FORMAT + 1}, and this release reads up to {FORMAT}"):
        read(of_format(FORMAT + 1, encode_manifest(SOME)))


@given(st.data())
def test_every_flipped_bit_and_every_cut_is_noticed(data):
    whole = encode_part({"month=1": bytes(range(200))})
    at = data.draw(st.integers(0, len(whole) - 1))
    flipped = whole[:at] + bytes([whole[at] ^ (1 << data.draw(st.integers(0, 7)))]) + whole[at + 1 :]
    for damaged in (flipped, whole[:at]):
        with pytest.raises(CorruptObject):
            decode_part(damaged, source="part")


SINCE_1_0 = {"id", "start", "instant_floor", "time", "reader_features", "writer_features", "early", "txn_floors"}
SINCE_1_0 |= {"groups", "producers", "reached"}
"""Fields that manifests of earlier releases do not have."""


FIELDS = unseal(encode_manifest(SOME), source="it")


@pytest.mark.parametrize(
    "fields",
    [
        *({name: FIELDS[name] for name in FIELDS if name != missing} for missing in sorted(FIELDS.keys() - SINCE_1_0)),
        *(
            {**FIELDS, name: value}
            for name, value in (
                ("table", 1),
                ("hash", None),
                ("position", "7"),
                ("txns", {"etl:1": "1"}),
                ("txns", ["etl:1"]),
                ("live", [1, None]),
                ("first", ["1", "6"]),
                ("partitions", [b"month=1", "m"]),
                ("cleans", [["5", 1, 4]]),
                ("appends", [[1, None]]),
                ("parts", [["a", "b", 1, 100, 200, 3]]),
                ("parts", [["a", "b", "c", 100, 200, "3"]]),
            )
        ),
    ],
)
def test_a_manifest_that_lacks_a_field_or_has_a_value_of_another_type_is_refused(fields):
    with pytest.raises(CorruptObject, match="is not a manifest"):
        decode_manifest(seal(fields), name=NAME)


@pytest.mark.parametrize("size", [0, 1, 1 << 31, 1 << 40, 1 << 62, 1 << 63, (1 << 64) - 1])
@pytest.mark.parametrize("rest", [encode_part({"month=1": bytes(1000)})[18:], b"no zstd at all"])
def test_a_size_that_is_not_there_is_refused_and_takes_no_memory_nor_leaves_any_taken(size, rest):
    body = struct.pack("<Q", size) + rest
    forged = b"TMCP" + struct.pack("<HI", FORMAT, zlib.crc32(body, FORMAT)) + body

    def refuse() -> None:
        for _ in range(20):
            with pytest.raises(CorruptObject):
                read_part(forged)

    assert taken_bytes(refuse) < 4 << 20


def test_what_compresses_beyond_the_usual_is_read():
    blocks = {"month=1": bytes(5 << 20)}
    assert len(encode_part(blocks)) < 10_000
    assert decode_part(encode_part(blocks), source="part") == blocks


@pytest.mark.parametrize(
    ("read", "fields", "told"),
    [
        *((read_part, fields, "holds no rows") for fields in ({}, {"blocks": []}, {"blocks": {"month=1": "text"}})),
        *((decode_pointer, fields, "names no manifests") for fields in ({}, {"manifests": "x"}, {"manifests": [1]})),
    ],
)
def test_a_part_without_rows_and_a_pointer_that_names_nothing_are_refused(read, fields, told):
    with pytest.raises(CorruptObject, match=told):
        read(seal(fields))
