"""Planned files grouped into tasks of about equal bytes."""

from collections.abc import Sequence
from heapq import heappop, heappush

from tallymark.engine.sizing.plan import PlannedFile, SizingPlan

TASK_FILES = 500
"""Maximum number per task: as many as a task keeps open by default (``TaskSettings.open_file_count``)."""


def tasks_of(
    plan: SizingPlan, *, task_bytes: int, task_count_min: int = 1, task_files: int = TASK_FILES
) -> tuple[tuple[PlannedFile, ...], ...]:
    """Return the planned files, grouped by task. A task has at most one file of a partition, so that its path
    determines a row's task.

    ``task_bytes`` determines the number of tasks: with about ``max_file_bytes`` a task is the work of a file. There are
    more where a partition has more files, where a task would have more than ``task_files``, or where ``task_count_min``
    is greater (the number of cores, say) and there are files for them. Deterministic; the files of a task are sorted by
    partition.
    """
    if not plan.files:
        return ()
    partitions = _widest_first(plan.files)
    count = max(
        len(partitions[0]),
        -(-plan.bytes // task_bytes),
        -(-len(plan.files) // task_files),
        min(task_count_min, len(plan.files)),
    )
    tasks = _dealt(partitions, count, task_files)
    return tuple(tuple(sorted(task, key=_partition_of)) for task in tasks if task)


def _widest_first(files: Sequence[PlannedFile]) -> list[list[PlannedFile]]:
    """Return the files by partition, the largest first; first the partitions with the most files, then with the
    largest.
    """
    found: dict[str, list[PlannedFile]] = {}
    for file in files:
        found.setdefault(file.partition, []).append(file)
    partitions = [sorted(files, key=lambda file: -file.bytes) for files in found.values()]
    return sorted(partitions, key=lambda files: (-len(files), -files[0].bytes, files[0].partition))


def _dealt(partitions: Sequence[Sequence[PlannedFile]], count: int, task_files: int) -> list[list[PlannedFile]]:
    """Assign each file to the task that has the least so far; full tasks take no more, and new ones are added where
    needed.
    """
    tasks: list[list[PlannedFile]] = [[] for _ in range(count)]
    open_ = [(0, number) for number in range(count)]  # as it stands, a heap
    for files in partitions:
        while len(open_) < len(files):
            heappush(open_, (0, len(tasks)))
            tasks.append([])
        for (bytes_, number), file in zip([heappop(open_) for _ in files], files, strict=True):
            tasks[number].append(file)
            if len(tasks[number]) < task_files:
                heappush(open_, (bytes_ + file.bytes, number))
    return tasks


def _partition_of(file: PlannedFile) -> str:
    return file.partition
