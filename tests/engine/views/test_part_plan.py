"""Which partitions of a checkpoint lie together."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.views.checkpoint_format import Part
from tallymark.engine.views.part_plan import PART_BYTES, Cutter, Rows, Run, part_of, plan_parts
from tests.engine.views.checkpointing import parts_of

names = st.integers(0, 40).map("p{:02d}".format)


def part(first: str, last: str, *, size: int = PART_BYTES, oldest_removal: int = 0) -> Part:
    return Part(first, last, f"{first}-{last}", 1, size, oldest_removal)


@st.composite
def some_parts(draw: st.DrawFn) -> list[Part]:
    ends = sorted(draw(st.sets(names, max_size=12)))
    return [
        part(first, last, size=draw(st.sampled_from((1, PART_BYTES))), oldest_removal=draw(st.integers(0, 3)))
        for first, last in zip(ends[::2], ends[1::2], strict=False)
    ]


@given(some_parts(), st.frozensets(names), st.integers(0, 3))
def test_a_part_stays_only_as_it_is_and_all_that_changed_is_written(parts, changed, floor):
    partitions = {end for each in parts for end in (each.first, each.last)} | changed
    plan = plan_parts(partitions, changed, parts, floor=floor)
    kept = [step for step in plan if isinstance(step, Part)]
    written = [partition for step in plan if isinstance(step, Run) for partition in step.partitions]
    assert changed <= set(written)
    for each in kept:
        assert not any(each.first <= partition <= each.last for partition in written)
        assert not 0 < each.oldest_removal <= floor
    for each in set(parts) - set(kept):
        assert {each.first, each.last} <= set(written)
    spans = [
        (step.first, step.last) if isinstance(step, Part) else (min(step.partitions), max(step.partitions))
        for step in plan
    ]
    assert all(last < first for (_, last), (first, _) in pairwise(spans)), "in order, and none overlaps another"


@given(some_parts(), names)
def test_a_partition_is_looked_for_in_the_part_that_spans_it(parts, partition):
    found = part_of(parts, partition)
    assert found == next((each for each in parts if each.first <= partition <= each.last), None)


@given(st.lists(st.integers(0, 300), max_size=60))
def test_a_run_is_cut_into_parts_of_one_size_and_nothing_is_lost(sizes):
    with parts_of(1000):
        rows = [Rows(f"p{number:02d}", b"x" * size, 0) for number, size in enumerate(sizes)]
        cutter = Cutter()
        cut = [done for each in rows for done in cutter.add(each)] + list(cutter.end())
    assert [each for some in cut for each in some] == [each for each in rows if each.block]
    bytes_of = [sum(len(each.block) for each in some) for some in cut]
    assert all(size <= 1500 for size in bytes_of)
    assert all(size >= 450 for size in bytes_of) or len(cut) <= 1, "a partition more or less than three quarters"


def test_of_a_full_part_and_one_that_is_not_only_the_latter_takes_in_what_comes_behind_it():
    full, open_ = part("a", "c"), part("a", "c", size=10)
    assert plan_parts(["a", "c", "d"], frozenset("d"), [full], floor=0) == [full, Run(("d",))]
    assert plan_parts(["a", "c", "d"], frozenset("d"), [open_], floor=0) == [Run(("a", "c", "d"))]
