"""Planned files are grouped into tasks of about equal bytes, and none is left out."""

from collections import Counter

import pytest

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.sizing import PlannedFile, SizingPlan, tasks_of
from tallymark.engine.sizing.task_plan import decode_task_plan, encode_task_plan
from tallymark.engine.timeline.entry import DataFile

MIB = 1024 * 1024


def test_no_files_make_no_tasks() -> None:
    assert tasks_of(SizingPlan(files=()), task_bytes=MIB) == ()


def test_a_skewed_partition_is_spread_over_tasks() -> None:
    skewed = [PlannedFile("a", 10, 100 * MIB) for _ in range(7)]
    others = [PlannedFile(f"b{number}", 10, 10 * MIB) for number in range(20)]
    tasks = tasks_of(SizingPlan(files=(*skewed, *others)), task_bytes=120 * MIB)
    assert len(tasks) == 8
    assert all(Counter(file.partition for file in task).most_common(1)[0][1] == 1 for task in tasks)
    assert sorted(file.partition for task in tasks for file in task) == sorted(["a"] * 7 + [f"b{n}" for n in range(20)])
    assert max(sum(file.bytes for file in task) for task in tasks) <= 120 * MIB


def test_no_task_has_more_files_than_it_may_keep_open() -> None:
    """By bytes alone all but the large one were one task's."""
    files = [PlannedFile("large", 10, 100 * MIB), *(PlannedFile(f"p{number:03}", 1, 1) for number in range(600))]
    tasks = tasks_of(SizingPlan(files=tuple(files)), task_bytes=100 * MIB)
    assert sorted(map(len, tasks)) == [101, 500]
    few = tasks_of(SizingPlan(files=tuple(files)), task_bytes=100 * MIB, task_files=10)
    assert max(map(len, few)) == 10
    assert sum(map(len, few)) == 601


@pytest.mark.parametrize(("least", "tasks"), [(1, 1), (4, 4), (100, 5)])
def test_small_work_is_spread_where_more_tasks_are_wanted(least: int, tasks: int) -> None:
    plan = SizingPlan(files=tuple(PlannedFile(f"p{number}", 1, 1000) for number in range(5)))
    assert len(tasks_of(plan, task_bytes=MIB, task_count_min=least)) == tasks


def test_planned_files_are_decoded_as_they_were_encoded() -> None:
    small = DataFile("month=1/tail=🦆", "f_1_2.parquet", 3, 4, 5, 6)
    files = (
        PlannedFile("month=1/tail=🦆", 10, 20, small),
        PlannedFile("", 2**40, 2**50),
        PlannedFile("a", 0, 1, small, 7),
    )
    data = encode_task_plan(files)
    assert decode_task_plan(data) == files
    assert decode_task_plan(encode_task_plan(())) == ()
    for bit in range(8 * len(data)):
        damaged = int.from_bytes(data, "big") ^ 1 << bit
        with pytest.raises(InvalidRequest, match=r"the plan of a task cannot be read: .*; run the task again"):
            decode_task_plan(damaged.to_bytes(len(data), "big"))
