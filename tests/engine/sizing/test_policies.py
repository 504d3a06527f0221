"""Policies: which files take which rows, by the balanced policy and by Hudi's."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark import SizingSettings
from tallymark.engine.sizing import CommitSize, IncomingRows, PlannedFile, WorkloadProfile, fills
from tallymark.engine.sizing.evidence import FOOTER_BYTES
from tallymark.engine.sizing.fills import TINY, Fill
from tallymark.engine.sizing.planning import plan
from tallymark.engine.sizing.policies import balanced_files
from tallymark.engine.sizing.profile import FileUpdates
from tallymark.engine.timeline.entry import DataFile
from tests.engine.sizing.exact import fewest_files

MB = 1_000_000
SETTINGS = SizingSettings(max_file_bytes=120 * MB, small_file_bytes=100 * MB)


def held(name: str, bytes_: int, rewritten: int = 0) -> DataFile:
    return DataFile("p", name, 1000, bytes_, rewritten_bytes=rewritten)


def small(name: str, mb: int, rewritten_mb: int = 0) -> DataFile:
    return held(name, mb * MB, rewritten_mb * MB)


def updated(file: DataFile, mb: int) -> Fill:
    """Of which ten rows are replaced, and bring it to so many megabytes."""
    return fills.updated(FileUpdates(file, 10), mb * MB, SETTINGS)


def planned(
    bytes_: int,
    small: Sequence[DataFile] = (),
    settings: SizingSettings = SETTINGS,
    rows: int | None = None,
    also: Sequence[Fill] = (),
) -> list[PlannedFile]:
    """For rows of 1,000 bytes, or so many, beside files that are updated."""
    return list(balanced_files(IncomingRows("p", rows or bytes_ // 1000), bytes_, small, settings, also))


WORN = [small("f", 95, 871), small("g", 96, 878)]
"""Each requires 20 MB and has room for 25."""

DOCUMENTED_FILES = [small("F1", 40), small("F2", 80), small("F3", 90)]
"""Of its documentation."""

FULL = updated(small("u", 95), 100)
"""It has room for 20 MB."""

BALANCED = {
    "Hudi's example leaves a file less to rewrite and none small": (
        *(450, DOCUMENTED_FILES, []),
        [("F1", 114), ("F2", 114), (None, 114), (None, 114), (None, 114)],
    ),
    "the remainder is spread where every file stays large": (320, [], [], [(None, 106.7)] * 3),
    "else one file is cheap to fill": (250, [], [], [(None, 120), (None, 120), (None, 10)]),
    "fills are balanced with new files": (130, [small("f", 95)], [], [("f", 112.5), (None, 112.5)]),
    "8 times 110 MB allow 80 after 800": (30, [small("f", 80, 800)], [], [("f", 110)]),
    "a file whose budget is used up rests": (30, [small("f", 80, 990)], [], [(None, 30)]),
    "a fill that leaves a new file too is not made": (30, WORN, [], [(None, 30)]),
    "rows that pay for two fills fill both": (40, WORN, [], [("f", 115), ("g", 116)]),
    "drops do not use up the budget of a large file": (1, [small("f", 90)], [], [(None, 1)]),
    "more than drops fill it": (10, [small("f", 90)], [], [("f", 100)]),
    "updated files are filled first, however worn": (
        *(15, [small("f", 20)], [updated(small("worn", 105, 10_000), 105)]),
        [("worn", 120)],
    ),
    "what updates add leaves less room": (40, [], [updated(small("f", 80), 105)], [("f", 120), (None, 25)]),
    "beyond the maximum there is none": (30, [], [updated(small("f", 110), 130)], [("f", 130), (None, 30)]),
    "small files are filled where updates leave too little": (50, [small("g", 20)], [FULL], [("u", 120), ("g", 50)]),
    "and are balanced with the updated ones": (100, [small("g", 20)], [FULL], [("u", 110), ("g", 110)]),
    "a fill gets the 5 MB it requires out of the free room": (
        *(21, [small("g", 90)], [FULL]),
        [("u", 105.5), ("g", 105.5)],
    ),
    "a sixteenth of a file joins the one before": (127, [], [], [(None, 127)]),
    "or is spread over those before": (247, [], [], [(None, 123.5)] * 2),
    "or joins a file that takes updates": (27, [], [FULL], [("u", 127)]),
    "but none that they make larger": (1, [], [updated(small("f", 110), 127)], [("f", 127), (None, 1)]),
    "or one that is filled": (125, [small("f", 1)], [], [("f", 126)]),
    "more than that makes a new file": (128, [], [], [(None, 120), (None, 8)]),
}
"""Megabytes of rows, small files, files that are updated; and wanted: which file is filled, and its megabytes then."""


@pytest.mark.parametrize(("mb", "files", "also", "wanted"), BALANCED.values(), ids=BALANCED)
def test_rows_fill_and_make_the_files_of_the_example(
    mb: int, files: Sequence[DataFile], also: Sequence[Fill], wanted: list
) -> None:
    made = planned(mb * MB, files, also=also)
    assert [(file.fill and file.fill.name, round(file.bytes / MB, 1)) for file in made] == wanted
    assert [file.updates for file in made if file.updates] == [10] * len(also)
    has = {fill.file.path: fill.bin.has for fill in also}
    for file in made:
        before = FOOTER_BYTES if file.fill is None else has.get(file.fill.path, file.fill.bytes)
        assert file.rows == pytest.approx((file.bytes - before) / 1000, abs=5)


def test_new_files_have_the_rows_of_a_split_at_most() -> None:
    files = planned(230 * MB, [small("f", 20)], replace(SETTINGS, insert_split_rows=50_000))
    assert [(file.fill and file.fill.name, file.rows) for file in files] == [("f", 80_000), *[(None, 50_000)] * 3]


def test_a_row_beyond_the_maximum_has_a_file_of_its_own() -> None:
    assert [(file.rows, round(file.bytes / MB)) for file in planned(1000 * MB, rows=5)] == [(1, 200)] * 5


def test_a_file_of_updates_alone_is_planned_as_large_as_these_make_it() -> None:
    """A row of 300 MB goes to a file of its own, and leaves nothing of its bytes elsewhere."""
    files = planned(300 * MB, rows=1, also=[updated(small("u", 10), 10)])
    assert [(file.rows, file.bytes // MB) for file in files if file.updates] == [(0, 10)]


NEW_ROOM, TINY_BYTES = 60 * MB - FOOTER_BYTES, int(60 * MB * TINY)

one_write = st.fixed_dictionaries(
    {
        "bytes_": st.integers(1, 150 * MB) | st.integers(1, 3 * TINY_BYTES).map(lambda over: 2 * NEW_ROOM + over),
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


@given(st.integers(1, 2_000), st.integers(1, 500), st.integers(1, 100_000), st.floats(0, 1))
def test_no_new_file_is_a_tiny_one_beside_others(rows: int, row_bytes: int, most: int, limit: float) -> None:
    settings = SizingSettings(max_file_bytes=most, small_file_bytes=int(limit * most))
    sizes = [file.bytes for file in planned(rows * row_bytes, settings=settings, rows=rows)]
    assert len(sizes) == 1 or min(sizes) * (len(sizes) - 1) >= TINY * (sum(sizes) - min(sizes))
    assert max(sizes) <= max(most * (1 + TINY), row_bytes + FOOTER_BYTES)


def test_five_rows_beyond_the_maximum_join_its_file() -> None:
    (file,) = planned(1024 * 122_881, settings=SizingSettings(), rows=122_881)
    assert file.bytes == FOOTER_BYTES + 1024 * 122_881


@given(one_write, st.just([]) | st.lists(st.integers(1, 70 * MB), max_size=3))
def test_of_files_never_rewritten_the_best_are_filled_beside_updates_too(write: dict, grown: list[int]) -> None:
    also = [
        fills.updated(FileUpdates(held(f"u{number}", size), 1), size, write["settings"])
        for number, size in enumerate(grown)
    ]
    files = planned(**write, rows=write["bytes_"], also=also)
    chosen = [file for file in files if not file.updates]
    new = sum(file.fill is None for file in chosen)
    rewritten = sum(file.fill.bytes for file in chosen if file.fill is not None)
    assert (new, rewritten) == fewest_files(
        write["small"], write["bytes_"], NEW_ROOM, write["settings"], updated=grown, tiny=TINY_BYTES
    )
    assert sum(file.updates for file in files) == len(grown)


@given(one_write, st.lists(st.floats(0, 9), min_size=6, max_size=6))
def test_whatever_was_rewritten_before_one_file_more_than_the_best_is_the_worst(write: dict, history: list) -> None:
    small = [
        held(file.name, file.bytes, int(times * file.bytes))
        for file, times in zip(write["small"], history, strict=False)
    ]
    files = planned(write["bytes_"], small, write["settings"], rows=write["bytes_"])
    best, _ = fewest_files(small, write["bytes_"], NEW_ROOM, write["settings"])
    assert best - 1 <= sum(file.fill is None for file in files) <= best + 1


@given(one_write)
def test_one_planned_file_at_most_is_small(write: dict) -> None:
    """Where the budget asks for so little that it makes no file small by itself."""
    settings = SizingSettings(max_file_bytes=60 * MB, small_file_bytes=50 * MB, rewrite_budget=8)
    files = planned(write["bytes_"], write["small"], settings, rows=write["bytes_"])
    assert sum(file.bytes < settings.small_file_bytes for file in files) <= 1


KIB = 1024
FILE1, FILE2 = held("file1", 800 * KIB), held("file2", 800 * KIB)
A, B, C = held("a", 900 * KIB), held("b", 950 * KIB), held("c", 1100 * KIB)
BY_100 = {"insert_split_rows": 100}
DOCUMENTED = {"max_file_bytes": 120 * MB, "small_file_bytes": 100 * MB, "insert_split_rows": 120_000}

HUDI = {
    "s1: updates go to their files first and inserts are split by count": (
        *(200, [FILE1], BY_100 | {"small_file_bytes": 0, "updates": (FileUpdates(FILE1, 100),)}),
        [("file1", 0), (None, 100), (None, 100)],
    ),
    "s2: the last new file takes the remainder": (250, [], BY_100, [(None, 100), (None, 100), (None, 50)]),
    "s3: a small file is filled to the maximum first": (400, [FILE1], BY_100, [("file1", 200), *[(None, 100)] * 2]),
    "s3: inserts join the updates of a small file, whatever these add": (
        *(400, [FILE1], BY_100 | {"updates": (FileUpdates(FILE1, 100, plain_bytes=10 * MB),)}),
        [("file1", 200), (None, 100), (None, 100)],
    ),
    "files with updates precede filled ones, and a large one takes no insert": (
        *(150, [A, B, C], {"updates": (FileUpdates(B, 7), FileUpdates(C, 9))}),
        [("b", 50), ("c", 0), ("a", 100)],
    ),
    "s4: auto makes files of the maximum": (2400, [FILE1], {}, [("file1", 200), *[(None, 1000)] * 2, (None, 200)]),
    "a split of the maximum is rounded up: 1,024,000 / 1,023 is 1,000.98": (
        *(2500, [], {"commits": (CommitSize(rows=2000, bytes=2_046_000),)}),
        [(None, 1001), (None, 1001), (None, 498)],
    ),
    "s6: a file that another instant fills is left alone": (
        *(200, [FILE1, FILE2], {"taken": frozenset({"p/file1"})}),
        [("file2", 200)],
    ),
    "s7: the documentation's example": (
        *(450_000, [*DOCUMENTED_FILES, small("F4", 130), small("F5", 105)]),
        DOCUMENTED | {"commits": (CommitSize(rows=200_000, bytes=200 * MB),)},
        [("F1", 80_000), ("F2", 40_000), ("F3", 30_000), (None, 120_000), (None, 120_000), (None, 60_000)],
    ),
}
"""Rows, files, what is set or known; and wanted: which file takes how many rows. By Hudi's own tests, but for two."""


@pytest.mark.parametrize(("rows", "files", "how", "wanted"), HUDI.values(), ids=HUDI)
def test_rows_are_dealt_as_by_hudi_s_partitioner(
    rows: int, files: list[DataFile], how: dict[str, Any], wanted: list
) -> None:
    """Without commits a record is expected to have 1,024 bytes."""
    known = {name: how[name] for name in ("updates", "commits", "taken") if name in how}
    sizing = {"max_file_bytes": 1000 * KIB, "small_file_bytes": 1000 * KIB, **how}
    settings = SizingSettings(policy="hudi", **{name: value for name, value in sizing.items() if name not in known})
    made = plan(WorkloadProfile(incoming=(IncomingRows("p", rows),), **known), files, settings)
    assert [(file.fill and file.fill.name, file.rows) for file in made.files] == wanted
    assert {file.partition for file in made.files} == {"p"}
    updates = [(file.fill, file.updates) for file in made.files if file.updates]
    assert updates == [(each.file, each.rows) for each in known.get("updates", ())]
