"""Policies: which files take which rows, by the balanced policy and by Hudi's."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark import SizingSettings
from tallymark.engine.sizing import CommitSize, IncomingRows, PlannedFile, WorkloadProfile, fills
from tallymark.engine.sizing.evidence import FOOTER_BYTES
from tallymark.engine.sizing.fills import Fill
from tallymark.engine.sizing.planning import plan
from tallymark.engine.sizing.policies import balanced_files
from tallymark.engine.sizing.profile import FileUpdates
from tallymark.engine.timeline.entry import DataFile
from tests.engine.sizing.exact import fewest_files

MB = 1_000_000
SETTINGS = SizingSettings(max_file_bytes=120 * MB, small_file_bytes=100 * MB)


def held(name: str, bytes_: int, rewritten: int = 0) -> DataFile:
    return DataFile("p", name, 1000, bytes_, rewritten_bytes=rewritten)


def planned(
    bytes_: int,
    small: Sequence[DataFile] = (),
    settings: SizingSettings = SETTINGS,
    rows: int | None = None,
    also: Sequence[Fill] = (),
) -> list[PlannedFile]:
    """For rows of 1,000 bytes, or so many, beside files that are updated."""
    return list(balanced_files(IncomingRows("p", rows or bytes_ // 1000), bytes_, small, settings, also))


def updated(file: DataFile, bytes_: int) -> Fill:
    """Of which ten rows come anew, and bring it to so many bytes."""
    return fills.updated(FileUpdates(file, 10), bytes_, SETTINGS)


def sizes_mb(files: Sequence[PlannedFile]) -> list[int]:
    return [round(file.bytes / MB) for file in files]


def filled(files: Sequence[PlannedFile]) -> list[str]:
    return [file.fill.name for file in files if file.fill is not None]


def test_the_documentation_s_example_of_hudi_leaves_a_file_less_to_rewrite_and_none_small() -> None:
    files = planned(450 * MB, [held("F1", 40 * MB), held("F2", 80 * MB), held("F3", 90 * MB)])
    assert filled(files) == ["F1", "F2"]
    assert sizes_mb(files) == [114] * 5


def test_the_remainder_is_spread_where_every_file_stays_large_enough() -> None:
    assert sizes_mb(planned(320 * MB)) == [107, 107, 107]


def test_else_it_is_one_file_that_costs_little_to_fill() -> None:
    assert sizes_mb(planned(250 * MB)) == [120, 120, 10]


def test_fills_are_balanced_with_new_files() -> None:
    files = planned(130 * MB, [held("f", 95 * MB)])
    assert filled(files) == ["f"]
    assert sizes_mb(files) == [113, 113]  # not 120, and 105 beside it


def test_nothing_is_rewritten_that_saves_no_file() -> None:
    assert filled(planned(100 * MB, [held("f", 40 * MB)])) == []


def test_the_smallest_file_is_filled_first() -> None:
    assert filled(planned(20 * MB, [held("large", 80 * MB), held("little", 10 * MB)])) == ["little"]


@pytest.mark.parametrize(("rewritten", "is_filled"), [(800 * MB, True), (990 * MB, False)])
def test_a_file_that_has_used_up_its_budget_rests(rewritten: int, is_filled: bool) -> None:
    """8 times what it will have are 880 MB: 80 of its own, once more, and 800 before."""
    files = planned(30 * MB, [held("f", 80 * MB, rewritten)])
    assert bool(filled(files)) is is_filled


def test_rows_that_pay_for_one_fill_do_not_begin_another() -> None:
    """Each of the two asks for 20 MB and has room for 25: one alone leaves a new file, too, and so saves none."""
    worn = [held("f", 95 * MB, 871 * MB), held("g", 96 * MB, 878 * MB)]
    files = planned(30 * MB, worn)
    assert filled(files) == []
    assert sizes_mb(files) == [30]
    assert filled(planned(40 * MB, worn)) == ["f", "g"]


def test_drops_do_not_use_up_the_budget_of_a_large_file() -> None:
    assert filled(planned(MB, [held("f", 90 * MB)])) == []
    assert filled(planned(10 * MB, [held("f", 90 * MB)])) == ["f"]


def test_without_a_budget_no_file_is_filled() -> None:
    settings = SizingSettings(rewrite_budget=0)
    assert sizes_mb(planned(30 * MB, [held("f", 40 * MB)], settings)) == [30]


def test_new_files_have_the_rows_of_a_split_at_most() -> None:
    settings = SizingSettings(max_file_bytes=120 * MB, small_file_bytes=100 * MB, insert_split_rows=50_000)
    files = planned(230 * MB, [held("f", 20 * MB)], settings)
    assert filled(files) == ["f"]
    assert [file.rows for file in files if file.fill is None] == [50_000] * 3
    assert sum(file.rows for file in files) == 230_000


def test_a_row_beyond_the_maximum_has_a_file_of_its_own() -> None:
    files = planned(1000 * MB, rows=5)
    assert [file.rows for file in files] == [1] * 5
    assert sizes_mb(files) == [200] * 5


def test_the_room_of_files_that_updates_rewrite_anyway_is_filled_first() -> None:
    """However large they are, and whatever was rewritten for them before."""
    worn = updated(held("worn", 105 * MB, 10_000 * MB), 105 * MB)
    files = planned(15 * MB, [held("f", 20 * MB)], also=[worn])
    assert filled(files) == ["worn"]
    assert sizes_mb(files) == [120]


def test_what_updates_add_leaves_less_room() -> None:
    """Of the 40 MB that a file of 80 has, they take 25: without them it would have taken all."""
    grown = updated(held("f", 80 * MB), 105 * MB)
    files = planned(40 * MB, also=[grown])
    assert [(file.rows, file.updates) for file in files] == [(15_000, 10), (25_000, 0)]
    assert sizes_mb(files) == [120, 25]


def test_a_file_that_updates_bring_beyond_the_maximum_takes_no_insert() -> None:
    files = planned(30 * MB, also=[updated(held("f", 110 * MB), 130 * MB)])
    assert [(file.rows, file.updates) for file in files] == [(0, 10), (30_000, 0)]
    assert sizes_mb(files) == [130, 30]


def test_where_updates_leave_no_room_small_files_are_filled_as_ever() -> None:
    files = planned(50 * MB, [held("g", 20 * MB)], also=[updated(held("f", 95 * MB), 100 * MB)])
    assert filled(files) == ["f", "g"]
    assert sizes_mb(files) == [120, 50]
    files = planned(100 * MB, [held("g", 20 * MB)], also=[updated(held("f", 95 * MB), 100 * MB)])
    assert filled(files) == ["f", "g"]
    assert sizes_mb(files) == [110, 110]


def test_bytes_move_out_of_the_free_room_where_a_fill_then_saves_a_file() -> None:
    """Of 21 MB one is left over: too little for a fill that asks for 5, but the free room can do without these."""
    files = planned(21 * MB, [held("g", 90 * MB)], also=[updated(held("u", 95 * MB), 100 * MB)])
    assert filled(files) == ["u", "g"]
    assert {file.bytes for file in files} == {105_500_000}


def test_a_file_of_updates_alone_is_planned_as_large_as_these_make_it() -> None:
    """A row of 300 MB goes to a file of its own, and leaves nothing of its bytes elsewhere."""
    files = planned(300 * MB, rows=1, also=[updated(held("u", 10 * MB), 10 * MB)])
    assert [(file.rows, file.bytes // MB) for file in files if file.updates] == [(0, 10)]


one_write = st.fixed_dictionaries(
    {
        "bytes_": st.integers(1, 150 * MB),
        "small": st.lists(st.integers(1, 49 * MB), max_size=6).map(
            lambda sizes: [held(f"f{number}", size) for number, size in enumerate(sizes)]
        ),
        "settings": st.builds(
            SizingSettings,
            max_file_bytes=st.just(60 * MB),
            small_file_bytes=st.integers(49 * MB, 60 * MB),
            rewrite_budget=st.sampled_from([0, 0.5, 1, 2, 8, 100]),
        ),
    }
)


@given(one_write)
def test_of_files_never_rewritten_the_best_are_filled(write: dict) -> None:
    files = planned(**write, rows=write["bytes_"])
    new = sum(file.fill is None for file in files)
    rewritten = sum(file.fill.bytes for file in files if file.fill is not None)
    best = fewest_files(write["small"], write["bytes_"], 60 * MB - FOOTER_BYTES, write["settings"])
    assert (new, rewritten) == best


@given(one_write, st.lists(st.integers(1, 70 * MB), max_size=3))
def test_beside_updates_the_best_are_filled(write: dict, grown: list[int]) -> None:
    also = [
        fills.updated(FileUpdates(held(f"u{number}", size), 1), size, write["settings"])
        for number, size in enumerate(grown)
    ]
    files = planned(**write, rows=write["bytes_"], also=also)
    free_room = sum(max(0, 60 * MB - size) for size in grown)
    chosen = [file for file in files if not file.updates]
    new = sum(file.fill is None for file in chosen)
    rewritten = sum(file.fill.bytes for file in chosen if file.fill is not None)
    new_room = 60 * MB - FOOTER_BYTES
    assert (new, rewritten) == fewest_files(
        write["small"], write["bytes_"], new_room, write["settings"], free_room=free_room
    )
    assert sum(file.updates for file in files) == len(grown)


@given(one_write, st.lists(st.floats(0, 9), min_size=6, max_size=6))
def test_whatever_was_rewritten_before_one_file_more_than_the_best_is_the_worst(write: dict, history: list) -> None:
    small = [
        held(file.name, file.bytes, int(times * file.bytes))
        for file, times in zip(write["small"], history, strict=False)
    ]
    files = planned(write["bytes_"], small, write["settings"], rows=write["bytes_"])
    best, _ = fewest_files(small, write["bytes_"], 60 * MB - FOOTER_BYTES, write["settings"])
    assert best <= sum(file.fill is None for file in files) <= best + 1


@given(one_write)
def test_one_planned_file_at_most_is_small(write: dict) -> None:
    """Where the budget asks for so little that it makes no file small by itself."""
    settings = SizingSettings(max_file_bytes=60 * MB, small_file_bytes=50 * MB, rewrite_budget=8)
    files = planned(write["bytes_"], write["small"], settings, rows=write["bytes_"])
    assert sum(file.bytes < settings.small_file_bytes for file in files) <= 1


KIB = 1024

DEFAULT_AVERAGE = ()
"""No commits: a record is taken for 1,024 bytes."""


def hudi_planned(
    rows: int,
    files: tuple[DataFile, ...] = (),
    *,
    limit: int = 1000 * KIB,
    split: int | None = None,
    commits: tuple[CommitSize, ...] = DEFAULT_AVERAGE,
    max_file_bytes: int = 1000 * KIB,
    taken: frozenset[str] = frozenset(),
    updates: tuple[FileUpdates, ...] = (),
) -> list[tuple[str | None, int]]:
    """The files that are filled or updated, and None for each new one, with their incoming rows."""
    settings = SizingSettings(
        policy="hudi",
        max_file_bytes=max_file_bytes,
        small_file_bytes=limit,
        insert_split_rows="auto" if split is None else split,
    )
    profile = WorkloadProfile(incoming=(IncomingRows("p", rows),), updates=updates, commits=commits, taken=taken)
    made = plan(profile, files, settings)
    assert all(file.partition == "p" for file in made.files)
    assert [(file.fill, file.updates) for file in made.files if file.updates] == [(up.file, up.rows) for up in updates]
    return [(None if file.fill is None else file.fill.name, file.rows) for file in made.files]


def hudi_held(name: str, bytes_: int) -> DataFile:
    return DataFile("p", name, 1000, bytes_)


def test_s1_updates_go_to_their_files_first_and_inserts_are_split_by_count() -> None:
    """With a limit of 0, so that no file is filled with inserts."""
    file1 = hudi_held("file1", 800 * KIB)
    made = hudi_planned(200, (file1,), split=100, limit=0, updates=(FileUpdates(file1, 100),))
    assert made == [("file1", 0), (None, 100), (None, 100)]


def test_s2_the_last_new_file_takes_the_remainder() -> None:
    assert hudi_planned(250, split=100) == [(None, 100), (None, 100), (None, 50)]


@pytest.mark.parametrize("updated", [0, 100])
def test_s3_a_small_file_is_filled_to_the_maximum_first(updated: int) -> None:
    """Inserts join the updates of a small file, in the first bucket, and take all of its room whatever these add."""
    file1 = hudi_held("file1", 800 * KIB)
    updates = (FileUpdates(file1, updated, plain_bytes=10 * MB),) if updated else ()
    made = hudi_planned(400, (file1,), split=100, updates=updates)
    assert made == [("file1", 200), (None, 100), (None, 100)]
    assert [rows / 400 for _, rows in made] == [0.5, 0.25, 0.25]


def test_files_with_updates_come_before_those_that_are_only_filled() -> None:
    """Of both kinds each file once; one that is not small takes its updates and no insert."""
    small, other, large = hudi_held("a", 900 * KIB), hudi_held("b", 950 * KIB), hudi_held("c", 1100 * KIB)
    made = hudi_planned(150, (small, other, large), updates=(FileUpdates(other, 7), FileUpdates(large, 9)))
    assert made == [("b", 50), ("c", 0), ("a", 100)]


def test_s4_auto_makes_new_files_of_the_maximum() -> None:
    made = hudi_planned(2400, (hudi_held("file1", 800 * KIB),))
    assert made == [("file1", 200), (None, 1000), (None, 1000), (None, 200)]
    assert [rows / 2400 for _, rows in made] == pytest.approx([0.08, 0.42, 0.42, 0.08], abs=0.01)


def test_a_split_of_the_maximum_is_rounded_up() -> None:
    """1,024,000 / 1,023 is 1,000.98."""
    made = hudi_planned(2500, commits=(CommitSize(rows=2000, bytes=2_046_000),))
    assert made == [(None, 1001), (None, 1001), (None, 498)]


def test_s6_a_file_that_another_instant_is_filling_is_left_alone() -> None:
    files = (hudi_held("file1", 800 * KIB), hudi_held("file2", 800 * KIB))
    assert hudi_planned(200, files, taken=frozenset({"p/file1"})) == [("file2", 200)]


def test_s7_the_documentation_s_example() -> None:
    files = tuple(hudi_held(f"F{number}", size * MB) for number, size in enumerate((40, 80, 90, 130, 105), start=1))
    made = hudi_planned(
        450_000,
        files,
        max_file_bytes=120 * MB,
        limit=100 * MB,
        split=120_000,
        commits=(CommitSize(rows=200_000, bytes=200 * MB),),
    )
    assert made == [
        ("F1", 80_000),
        ("F2", 40_000),
        ("F3", 30_000),
        (None, 120_000),
        (None, 120_000),
        (None, 60_000),
    ]
