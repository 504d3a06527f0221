"""A plan counts every row once, and keeps to the settings, whatever is known of the rows and the files."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark import SizingSettings
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.sizing import CommitSize, IncomingRows, Sample, SizingPlan, WorkloadProfile, tasks_of
from tallymark.engine.sizing.fills import LEEWAY, TINY
from tallymark.engine.sizing.planning import DEFAULT_RECORD_BYTES, average_record_bytes, plan
from tallymark.engine.sizing.profile import FileUpdates
from tallymark.engine.timeline.entry import DataFile

MB = 1_000_000
SETTINGS = SizingSettings(max_file_bytes=120 * MB, small_file_bytes=100 * MB)

Policy = Literal["balanced", "hudi"]

paths = st.sampled_from(["", "day=1", "day=2", "day=3/hour=1"])
sizes = st.one_of(st.integers(0, 5), st.integers(0, 10 * MB))


def numbered(files: list[DataFile]) -> tuple[DataFile, ...]:
    return tuple(replace(file, name=f"f{number}{file.name}") for number, file in enumerate(files))


tables = st.lists(
    st.builds(
        DataFile,
        partition=paths,
        name=st.integers(0, 3).map(lambda commit: f"_0-0-0_{commit:017}.parquet"),
        rows=st.integers(0, 100_000),
        bytes=sizes,
        plain_bytes=st.one_of(st.just(0), sizes),
        rewritten_bytes=st.one_of(st.just(0), sizes),
    ),
    max_size=8,
).map(numbered)
profiles = st.builds(
    WorkloadProfile,
    incoming=st.lists(
        st.builds(
            IncomingRows,
            partition=paths,
            rows=st.one_of(st.integers(0, 3), st.integers(0, 10_000)),
            plain_bytes=st.one_of(st.none(), sizes),
        ),
        unique_by=lambda rows: rows.partition,
    ).map(tuple),
    sample=st.one_of(st.none(), st.builds(Sample, st.integers(0, 1000), sizes, sizes)),
    commits=st.lists(st.builds(CommitSize, st.integers(0, 1000), sizes), max_size=7).map(tuple),
    taken=st.frozensets(
        st.sampled_from(["f0_0-0-0_00000000000000000.parquet", "day=1/f1_0-0-0_00000000000000001.parquet"])
    ),
)
updated = st.dictionaries(st.integers(0, 7), st.tuples(st.integers(1, 10_000), st.one_of(st.none(), sizes)), max_size=3)
"""Rows that come anew, and their plain bytes, by the place of their file in the table."""
settings_ = st.builds(
    SizingSettings,
    max_file_bytes=st.integers(MB, 3 * MB),
    small_file_bytes=st.integers(0, MB),
    insert_split_rows=st.one_of(st.just("auto"), st.integers(500, 2000)),
    rewrite_budget=st.sampled_from([0, 5e-324, 0.1, 1, 8.0, math.inf]),
    policy=st.sampled_from(["balanced", "hudi"]),
)


def updating(profile: WorkloadProfile, files: Sequence[DataFile], updated: dict) -> WorkloadProfile:
    updates = tuple(FileUpdates(file, *updated[place]) for place, file in enumerate(files) if place in updated)
    return replace(profile, updates=updates)


def every_row_is_planned_once(made: SizingPlan, profile: WorkloadProfile) -> bool:
    planned: Counter[str] = Counter()
    for file in made.files:
        assert file.rows > 0 or file.updates > 0
        planned[file.partition] += file.rows
    return +planned == Counter({rows.partition: rows.rows for rows in profile.incoming if rows.rows})


def every_update_is_planned_once_where_its_row_is(made: SizingPlan, profile: WorkloadProfile) -> bool:
    planned = [(file.fill, file.updates) for file in made.files if file.updates]
    assert len({file for file, _ in planned}) == len(planned)
    return set(planned) == {(updates.file, updates.rows) for updates in profile.updates}


def every_fill_is_of_a_small_file_that_nobody_else_fills(
    made: SizingPlan, files: Sequence[DataFile], profile: WorkloadProfile, settings: SizingSettings
) -> bool:
    fills = [(file.partition, file.fill) for file in made.files if file.fill is not None]
    assert all(fill in files and fill.partition == partition for partition, fill in fills)
    chosen = [file.fill for file in made.files if file.fill is not None and not file.updates]
    assert all(fill.bytes < settings.small_file_bytes and fill.path not in profile.taken for fill in chosen)
    return len({fill.path for _, fill in fills}) == len(fills)


def every_file_is_sized_within_the_maximum(made: SizingPlan, settings: SizingSettings) -> bool:
    most = settings.max_file_bytes * (1 + TINY)
    return all(file.bytes <= most or file.rows == (0 if file.updates else 1) for file in made.files)


def every_fill_is_within_the_budget(made: SizingPlan, settings: SizingSettings) -> bool:
    budget = settings.rewrite_budget * LEEWAY
    return all(
        file.fill.rewritten_bytes + file.fill.bytes <= budget * (file.bytes + 1)
        for file in made.files
        if file.fill is not None and not file.updates
    )


@given(profiles, tables, updated, settings_)
def test_every_plan_keeps_to_its_settings(
    profile: WorkloadProfile, files: tuple, updated: dict, settings: SizingSettings
) -> None:
    profile = updating(profile, files, updated)
    made = plan(profile, files, settings)
    assert every_row_is_planned_once(made, profile)
    assert every_update_is_planned_once_where_its_row_is(made, profile)
    assert every_fill_is_of_a_small_file_that_nobody_else_fills(made, files, profile, settings)
    order = [(file.partition, file.fill is None, not file.updates) for file in made.files]
    assert order == sorted(order)
    if settings.policy == "balanced":
        assert every_file_is_sized_within_the_maximum(made, settings)
        assert every_fill_is_within_the_budget(made, settings)


@given(profiles, tables, updated, settings_, st.randoms(use_true_random=False))
def test_in_which_order_files_and_partitions_come_does_not_matter(
    profile: WorkloadProfile, files: tuple, updated: dict, settings: SizingSettings, shuffled: random.Random
) -> None:
    profile = updating(profile, files, updated)
    incoming = shuffled.sample(profile.incoming, len(profile.incoming))
    updates = shuffled.sample(profile.updates, len(profile.updates))
    other = replace(profile, incoming=tuple(incoming), updates=tuple(updates))
    reordered = shuffled.sample(files, len(files)) if settings.policy == "balanced" else files
    made = plan(profile, files, settings)
    assert plan(other, tuple(reordered), settings) == made
    assert tasks_of(made, task_bytes=MB) == tasks_of(SizingPlan(files=made.files), task_bytes=MB)


def test_a_file_that_another_instant_fills_is_left_alone() -> None:
    files = [DataFile("p", "a", 10_000, 10 * MB), DataFile("p", "b", 20_000, 20 * MB)]
    profile = WorkloadProfile(incoming=(IncomingRows("p", 5_000),), taken=frozenset({"p/a"}))
    assert [file.fill for file in plan(profile, files, SETTINGS).files] == [files[1]]


def test_a_limit_of_zero_fills_no_file_but_sizes_new_ones() -> None:
    profile = WorkloadProfile(incoming=(IncomingRows("p", 200_000),))
    files = plan(profile, [DataFile("p", "a", 10_000, 10 * MB)], replace(SETTINGS, small_file_bytes=0)).files
    assert [(file.fill, file.rows) for file in files] == [(None, 100_000)] * 2


@pytest.mark.parametrize("total_mb", [1, 100, 119, 121, 350, 599, 601, 12_345])
def test_one_write_makes_as_few_files_as_can_be(total_mb: int) -> None:
    history = [DataFile("q", "f", 120_000, 120 * MB + 4096)]
    made = plan(WorkloadProfile(incoming=(IncomingRows("p", 1000 * total_mb),)), history, SETTINGS).files
    fewest = -(-(total_mb - 120 * TINY) // 120)
    assert fewest <= len(made) <= 1.05 * fewest + 1
    assert sum(file.bytes < SETTINGS.small_file_bytes for file in made) <= 1


policies = pytest.mark.parametrize("policy", ["balanced", "hudi"])


@policies
def test_a_count_of_rows_that_cannot_be_is_refused_before_it_takes_all_memory(policy: Policy) -> None:
    profile = WorkloadProfile(incoming=(IncomingRows("p", 10**18),))
    with pytest.raises(InvalidRequest, match=r"'p': its 1,000,000,000,000,000,000 rows would make [\d,]+ files"):
        plan(profile, [], replace(SETTINGS, policy=policy))


@policies
def test_a_write_of_updates_alone_rewrites_their_files(policy: Policy) -> None:
    files = [DataFile("p", "a", 10_000, 10 * MB), DataFile("p", "b", 20_000, 20 * MB), DataFile("q", "c", 1, 500 * MB)]
    profile = WorkloadProfile(incoming=(), updates=(FileUpdates(files[2], 1), FileUpdates(files[1], 5)))
    made = plan(profile, files, replace(SETTINGS, policy=policy))
    assert [(file.fill, file.rows, file.updates) for file in made.files] == [(files[1], 0, 5), (files[2], 0, 1)]
    assert made.rewritten_bytes == made.bytes == 520 * MB
    assert round(made.rewritten_per_byte, 2) == 1.04, "all of one file is given, and little of the other"


@policies
def test_what_is_told_twice_of_a_partition_or_a_file_adds_up(policy: Policy) -> None:
    small, told_otherwise = DataFile("p", "a", 10_000, 10 * MB), DataFile("p", "a", 10_000, 10 * MB, 5)
    profile = WorkloadProfile(
        incoming=(IncomingRows("p", 5), IncomingRows("p", 7)),
        updates=(FileUpdates(told_otherwise, 2), FileUpdates(small, 3)),
    )
    made = plan(profile, [small], replace(SETTINGS, policy=policy)).files
    assert [(file.fill and file.fill.name, file.rows, file.updates) for file in made] == [("a", 12, 5)]


def test_a_plan_counts_what_updates_make_their_file_grow_by() -> None:
    """80 MB, of whose rows half come anew and twice as long: 40 MB more, which leaves no room for the incoming ones."""
    old = DataFile("p", "a", 80_000, 80 * MB, 80 * MB)
    profile = WorkloadProfile(
        incoming=(IncomingRows("p", 30_000, 30 * MB),), updates=(FileUpdates(old, 40_000, 80 * MB),)
    )
    filled, new = plan(profile, [old], SETTINGS).files
    assert (filled.updates, round(filled.bytes / MB)) == (40_000, 120)
    assert filled.rows < 10
    assert round(new.bytes / MB) == 30


def test_ten_thousand_partitions_are_planned_and_dealt_to_tasks() -> None:
    incoming = tuple(IncomingRows(f"p={number}", 10 + number % 7, 1000) for number in range(10_000))
    made = plan(WorkloadProfile(incoming=incoming), (), SETTINGS)
    tasks = tasks_of(made, task_bytes=SETTINGS.max_file_bytes)
    assert sum(len(task) for task in tasks) == len(made.files) == 10_000
    assert max(len(task) for task in tasks) <= 500


HUDIS_GUESS = {
    "rounded up": ([(3, 200_000)], 66_667),
    "none of the limit or without rows": ([(10, 100_000), (0, 999_999), (10, 100_010)], 10_001),
    "the fifth": ([*[(10, 10)] * 4, (10, 1_000_000)], 100_000),
    "not the sixth": ([*[(10, 10)] * 5, (10, 1_000_000)], DEFAULT_RECORD_BYTES),
    "without commits": ([], DEFAULT_RECORD_BYTES),
}


@pytest.mark.parametrize(("commits", "bytes_"), HUDIS_GUESS.values(), ids=HUDIS_GUESS)
def test_a_record_has_the_size_of_those_of_the_newest_large_commit_among_five(
    commits: list[tuple[int, int]], bytes_: int
) -> None:
    assert average_record_bytes([CommitSize(*each) for each in commits], small_file_bytes=100_000) == bytes_
