"""Planned files grouped into tasks of about equal bytes."""

import heapq
from collections.abc import Sequence

from tallymark.engine.sizing.plan import PlannedFile, SizingPlan


def tasks_of(plan: SizingPlan, *, task_bytes: int, task_count_min: int = 1) -> tuple[tuple[PlannedFile, ...], ...]:
    """The planned files, each in one task; of a partition, one a task at most.

    As many tasks as ``task_bytes`` asks for; more where a partition has more files, or where ``task_count_min`` wants
    more and there are files for them. Deterministic; within a task sorted by partition.
    """
    if not plan.files:
        return ()
    count = task_count(plan, task_bytes=task_bytes, task_count_min=task_count_min)
    tasks: list[list[PlannedFile]] = [[] for _ in range(count)]
    loads = [(0, number) for number in range(count)]
    for files in _largest_first(plan.files):
        taken = [heapq.heappop(loads) for _ in files]
        for file, (load, number) in zip(files, taken, strict=True):
            tasks[number].append(file)
            heapq.heappush(loads, (load + file.bytes, number))
    return tuple(tuple(sorted(task, key=lambda file: file.partition)) for task in tasks if task)


def task_count(plan: SizingPlan, *, task_bytes: int, task_count_min: int = 1) -> int:
    by_bytes = -(-plan.bytes // task_bytes)
    widest = max(len(files) for files in _of_partitions(plan.files))
    return max(widest, by_bytes, min(task_count_min, len(plan.files)))


def _of_partitions(files: Sequence[PlannedFile]) -> list[list[PlannedFile]]:
    found: dict[str, list[PlannedFile]] = {}
    for file in files:
        found.setdefault(file.partition, []).append(file)
    return list(found.values())


def _largest_first(files: Sequence[PlannedFile]) -> list[list[PlannedFile]]:
    """The files of each partition, the largest first, and so the partitions."""
    partitions = [sorted(files, key=lambda file: -file.bytes) for files in _of_partitions(files)]
    return sorted(partitions, key=lambda files: (-len(files), -files[0].bytes, files[0].partition))
