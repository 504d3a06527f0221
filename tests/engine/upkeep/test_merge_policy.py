"""The policy of merges: few files, and each byte written three times at most."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.upkeep.due_partitions import LOOK_COUNT
from tallymark.engine.upkeep.merge_policy import FAN_IN, files_to_merge, is_open, merged_rewritten, open_files_max
from tests.engine.upkeep.layouts import MIB, Layout
from tests.support.examples import examples

DAY_S = 86_400
SIZES = st.one_of(st.integers(1, 300), st.integers(1, 20_000), st.integers(10_000, 70_000))


def file(number: int, size: int, rewritten: int = 0, *, partition: str = "p") -> DataFile:
    return DataFile(partition, f"{number:04}_0-0-0_20261101000000000.parquet", 1, size, rewritten_bytes=rewritten)


@given(flushes=st.lists(st.tuples(st.sampled_from("ab"), SIZES, st.integers(0, 30)), max_size=400))
@settings(max_examples=examples(200), deadline=None)
def test_files_are_bounded_at_any_time_no_byte_is_written_more_than_three_times_and_the_rest_is_one_file(flushes):
    layout, now = Layout(target_bytes=60_000, quiet_s=25), 0.0
    for partition, size, pause_s in flushes:
        now += pause_s
        while layout.merge_due(now=now):
            pass
        layout.flush(partition, size, now=now)
        while layout.merge_due(now=now):
            pass
        for name, files in layout.open.items():
            assert len(files) <= open_files_max(layout.flushes_open[name]) + LOOK_COUNT
    while layout.merge_due(now=now, is_ending=True):
        pass
    assert all(len(files) <= 1 for files in layout.open.values())
    assert max(layout.writes.values(), default=1) <= 3
    assert layout.merged_bytes <= 2 * layout.flushed_bytes
    assert layout.due.next_due_s(now=now) == float("inf")


@given(sizes=st.lists(SIZES, max_size=60), rewritten=st.lists(st.integers(0, 70_000), min_size=60, max_size=60))
def test_only_open_files_are_merged_and_a_full_one_is_less_than_twice_the_target(sizes, rewritten):
    files = [file(number, size, rewritten[number]) for number, size in enumerate(sizes)]
    for is_quiet in (False, True):
        chosen = files_to_merge(files, target_bytes=60_000, is_quiet=is_quiet)
        assert len(chosen) != 1
        assert len(set(chosen)) == len(chosen)
        assert all(is_open(each, target_bytes=60_000) for each in chosen)
        assert sum(each.bytes for each in chosen) < 2 * 60_000
        if is_quiet and not chosen:
            assert sum(is_open(each, target_bytes=60_000) for each in files) < 2


def test_tiny_files_wait_until_they_are_as_many_as_those_that_were_merged_once():
    merged = [file(number, 100, 100) for number in range(20)]
    tiny = [file(number, 10) for number in range(20, 39)]
    assert files_to_merge(tiny[:FAN_IN], target_bytes=60_000) == tuple(tiny[:FAN_IN])
    assert files_to_merge([*merged, *tiny], target_bytes=60_000) == ()
    assert files_to_merge([*merged, *tiny, file(39, 10)], target_bytes=60_000) == (*tiny, file(39, 10))


def test_what_was_merged_twice_and_what_is_nearly_full_stays():
    files = [file(0, 100, 201), file(1, 53_000), file(2, 10), file(3, 70_000)]
    assert files_to_merge(files, target_bytes=60_000, is_quiet=True) == ()


@given(
    before=st.lists(st.tuples(st.integers(1, 9_000), st.integers(0, 9_000)), min_size=1, max_size=9),
    sizes=st.lists(st.integers(1, 9_000), min_size=1, max_size=3),
)
def test_the_cost_of_a_merge_is_in_its_files_whole(before, sizes):
    files = [file(number, *each) for number, each in enumerate(before)]
    found = merged_rewritten(files, sizes)
    exact = sum(each.rewritten_bytes for each in files) + sum(sizes)
    assert exact <= sum(found) < exact + len(sizes)


def flush_bytes(random: Random, kind: str) -> int:
    """The size of a flush's file: of a steady stream, one of rare large rows, or one that is all footer."""
    if kind == "steady":
        return random.randint(300_000, 2 * MIB)
    if kind == "bursts":
        return random.choice([3_000] * 50 + [9 * MIB])
    return random.randint(2_000, 30_000)


@pytest.mark.parametrize(
    "merge_bytes_s",
    [pytest.param(200 * MIB, id="a quick store"), pytest.param(20 * MIB, id="a slow store", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(
    ("kinds", "hours"),
    [
        ({"steady": 4}, False),
        ({"tiny": 1}, False),
        ({"steady": 1, "bursts": 2, "tiny": 2}, False),
        ({"tiny": 1, "bursts": 1}, True),
    ],
    ids=["steady", "one partition of tiny flushes", "a mix", "a partition each hour, with late rows"],
)
def test_a_day_of_a_commit_each_second_ends_with_few_files_for_few_bytes(kinds, hours, merge_bytes_s):
    random = Random(38)
    names = [(kind, f"{kind}-{number}") for kind, count in kinds.items() for number in range(count)]
    layout, busy_until, most_open = Layout(footer_bytes=1_500), 0.0, 0
    for second in range(DAY_S):
        kind, name = random.choice(names)
        if hours:
            name = f"{name}/{max(0, second // 3600 - random.choice([0] * 19 + [1]))}"
        layout.flush(name, flush_bytes(random, kind), now=second)
        if second >= busy_until:
            busy_until = second + layout.merge_due(now=second) / merge_bytes_s
        most_open = max(most_open, len(layout.open[name]))
    while layout.merge_due(now=DAY_S, is_ending=True):
        pass
    assert layout.files <= 1.2 * layout.least_files
    assert layout.written_per_byte <= 3
    assert max(layout.writes.values()) <= 3
    assert most_open <= open_files_max(DAY_S)
