"""Packed rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.errors import CorruptObject
from tallymark.engine.timeline.entry import Bounds, DataFile
from tallymark.engine.views.block import (
    SOUGHT_MAX,
    find_live,
    mark_all_removed,
    pack_row,
    pack_rows,
    unpack_live,
    unpack_rows,
    without_removed,
)
from tallymark.engine.views.row import FileRow

counts = st.integers(0, (1 << 64) - 1)
positions = st.integers(1, (1 << 32) - 1)
names = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=40) | st.text(
    "ab", min_size=1, max_size=4
)
"""Also some that are a part of others."""
values = st.none() | st.lists(st.integers(0xF8, 0xFF), max_size=16).map(bytes)
"""Of no name: these are longer than any bound."""
bounds = st.builds(Bounds, st.integers(1, 300), values, values, counts)
files = st.builds(
    DataFile, st.just("month=1"), names, counts, counts, counts, counts, bounds=st.just(()) | st.tuples(bounds)
)
rows = st.lists(st.builds(FileRow, files, positions, st.just(0) | positions), unique_by=lambda row: row.file.name)


@given(rows)
def test_a_block_holds_its_rows_in_their_order(some):
    assert list(unpack_rows(pack_rows(some), "month=1")) == some


@given(rows, st.dictionaries(names, positions, max_size=2 * SOUGHT_MAX), st.randoms(use_true_random=False))
def test_removals_change_the_rows_of_their_names_and_no_others_or_one_that_is_absent_is_told(some, removals, random):
    chosen = random.sample(some, random.randint(0, len(some)))
    removals |= {row.file.name: 7 for row in chosen}
    block = bytearray(pack_rows(some))
    absent = mark_all_removed(block, removals)
    live = {row.file.name for row in some if not row.removed_at}
    assert absent in removals.keys() - live if removals.keys() - live else absent is None
    found = list(unpack_rows(block, "month=1"))
    expected = [FileRow(row.file, row.added_at, removals.get(row.file.name, row.removed_at)) for row in some]
    if absent is None:
        assert found == expected
    assert all(row in (old, new) for row, old, new in zip(found, some, expected, strict=True))


def test_of_many_removals_the_one_that_was_removed_before_is_told_and_none_behind_it():
    names = [f"{number:02}" for number in range(2 * SOUGHT_MAX)]
    rows = [FileRow(DataFile("month=1", name, 0, 0, 0, 0), 1, int(name == "03")) for name in names]
    assert mark_all_removed(bytearray(pack_rows(rows)), dict.fromkeys(reversed(names), 7)) == "03"


@given(rows, positions)
def test_what_was_removed_up_to_a_floor_goes_and_all_else_stays(some, floor):
    kept = without_removed(pack_rows(some), floor)
    assert list(unpack_rows(kept, "month=1")) == [row for row in some if not 0 < row.removed_at <= floor]


@given(rows, st.integers(0, (1 << 32) - 1))
def test_the_live_files_are_those_of_the_live_rows_and_each_is_found_by_its_id(some, position):
    block = pack_rows(some)
    live = [row.file for row in some if row.is_live(position)]
    assert unpack_live(block, "month=1", position) == live
    for row in some:
        of_id = [file for file in live if file.file_id == row.file.file_id]
        assert find_live(block, "month=1", row.file.file_id, position) == next(iter(of_id), None)


def test_a_file_is_found_by_its_whole_id_and_not_by_how_another_begins():
    some = pack_rows(FileRow(DataFile("month=1", name, 1, 2), 3) for name in ("ab_0_1.parquet", "a_0_1.parquet"))
    assert find_live(some, "month=1", "a", 3) == DataFile("month=1", "a_0_1.parquet", 1, 2)
    assert find_live(some, "month=1", "b", 3) is None
    assert find_live(some, "month=1", "a", 2) is None


@pytest.mark.parametrize("cut", [1, 20, 43, 60])
def test_a_block_that_was_cut_off_is_refused(cut):
    block = pack_row(FileRow(DataFile("month=1", "a" * 20, 1, 2), 3))
    with pytest.raises(CorruptObject, match="month=1"):
        list(unpack_rows(block + block[:cut], "month=1"))
    with pytest.raises(CorruptObject, match="month=1"):
        find_live(block + block[:cut], "month=1", "b", 3)


def test_a_file_with_a_name_of_ours_takes_114_bytes():
    name = "00000000-0000-0000-0000-000000000000-0_0-0-0_20261121020304001.parquet"
    assert len(pack_row(FileRow(DataFile("month=1", name, 1, 2), 3))) == 42 + len(name)
