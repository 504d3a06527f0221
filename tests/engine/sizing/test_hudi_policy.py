"""The cases that Apache Hudi's own tests assert of its partitioner, and its documentation's example, to the number."""

import pytest

from tallymark import SizingSettings
from tallymark.engine.sizing import CommitSize, IncomingRows, WorkloadProfile
from tallymark.engine.sizing.planning import plan
from tallymark.engine.sizing.profile import FileUpdates
from tallymark.engine.timeline.entry import DataFile

KIB = 1024
MB = 1_000_000
DEFAULT_AVERAGE = ()
"""No commits: a record is taken for 1,024 bytes."""


def planned(
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


def held(name: str, bytes_: int) -> DataFile:
    return DataFile("p", name, 1000, bytes_)


def test_s1_updates_go_to_their_files_first_and_inserts_are_split_by_count() -> None:
    """With a limit of 0, so that no file is filled with inserts."""
    file1 = held("file1", 800 * KIB)
    made = planned(200, (file1,), split=100, limit=0, updates=(FileUpdates(file1, 100),))
    assert made == [("file1", 0), (None, 100), (None, 100)]


def test_s2_the_last_new_file_takes_the_remainder() -> None:
    assert planned(250, split=100) == [(None, 100), (None, 100), (None, 50)]


@pytest.mark.parametrize("updated", [0, 100])
def test_s3_a_small_file_is_filled_to_the_maximum_first(updated: int) -> None:
    """Inserts join the updates of a small file, in the first bucket, and take all of its room whatever these add."""
    file1 = held("file1", 800 * KIB)
    updates = (FileUpdates(file1, updated, plain_bytes=10 * MB),) if updated else ()
    made = planned(400, (file1,), split=100, updates=updates)
    assert made == [("file1", 200), (None, 100), (None, 100)]
    assert [rows / 400 for _, rows in made] == [0.5, 0.25, 0.25]


def test_files_with_updates_come_before_those_that_are_only_filled() -> None:
    """Of both kinds each file once; one that is not small takes its updates and no insert."""
    small, other, large = held("a", 900 * KIB), held("b", 950 * KIB), held("c", 1100 * KIB)
    made = planned(150, (small, other, large), updates=(FileUpdates(other, 7), FileUpdates(large, 9)))
    assert made == [("b", 50), ("c", 0), ("a", 100)]


def test_s4_auto_makes_new_files_of_the_maximum() -> None:
    made = planned(2400, (held("file1", 800 * KIB),))
    assert made == [("file1", 200), (None, 1000), (None, 1000), (None, 200)]
    assert [rows / 2400 for _, rows in made] == pytest.approx([0.08, 0.42, 0.42, 0.08], abs=0.01)


def test_a_split_of_the_maximum_is_rounded_up() -> None:
    """1,024,000 / 1,023 is 1,000.98."""
    made = planned(2500, commits=(CommitSize(rows=2000, bytes=2_046_000),))
    assert made == [(None, 1001), (None, 1001), (None, 498)]


def test_s6_a_file_that_another_instant_is_filling_is_left_alone() -> None:
    files = (held("file1", 800 * KIB), held("file2", 800 * KIB))
    assert planned(200, files, taken=frozenset({"p/file1"})) == [("file2", 200)]


def test_s7_the_documentation_s_example() -> None:
    files = tuple(held(f"F{number}", size * MB) for number, size in enumerate((40, 80, 90, 130, 105), start=1))
    made = planned(
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
