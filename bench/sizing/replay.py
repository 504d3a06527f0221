"""The table that a history of appends leads to: a plan for each commit, and files as large as their rows make them.

The plan comes from the planner that jobs use. The writer is the task writer in arithmetic, and the same for all: a
planned file takes rows up to an eighth beyond the maximum, and what goes beyond rolls at the maximum.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from tallymark.bench.sizing.shape import Arrival, Commit, Shape
from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.plan import PlannedFile, SizingPlan
from tallymark.engine.sizing.profile import CommitSize, IncomingRows, Sample, WorkloadProfile
from tallymark.engine.tasks.file_growth import PLANNED_FULL
from tallymark.engine.timeline.entry import DataFile

COMMITS_MAX = 5
"""Number of newest appends that a planner gets: as many as Hudi's reads."""

SAMPLE_ROWS = 10_000
"""Encoded before the first commit, when there are no files to learn from."""

Planner = Callable[[WorkloadProfile, Sequence[DataFile], SizingSettings], SizingPlan]


@dataclass(frozen=True, slots=True)
class Written:
    """A file as its commit has left it."""

    commit: int
    """From 1."""
    bytes: int
    planned_bytes: int
    """0 where it was not planned."""
    is_last: bool
    """Of its partition in this commit."""


@dataclass(slots=True)
class Replay:
    """What lies there after the commits so far."""

    files: dict[str, DataFile]
    """By path."""
    written: list[Written] = field(default_factory=list)
    rewritten_bytes: int = 0
    inserted_bytes: int = 0


def replay(shape: Shape, sizing: SizingSettings | None, planner: Planner) -> Replay:
    """All commits of the shape. Without settings every task leaves a file of its own in every partition it has."""
    table = _Table(shape)
    for commit in shape.commits:
        table.append(
            commit, [*_unsized(commit, shape.tasks)] if sizing is None else table.plan(commit, sizing, planner)
        )
    return table.found


def planned(shape: Shape, sizing: SizingSettings, planner: Planner) -> Sequence[PlannedFile]:
    """The plan of the first commit."""
    return _Table(shape).plan(shape.commits[0], sizing, planner)


def _unsized(commit: Commit, tasks: int) -> Iterator[PlannedFile]:
    for arrival in commit:
        for task in range(tasks):
            rows = arrival.rows * (task + 1) // tasks - arrival.rows * task // tasks
            if rows:
                yield PlannedFile(arrival.partition, rows, 0, None)


class _Table:
    def __init__(self, shape: Shape) -> None:
        self.found = Replay({file.path: file for file in shape.before})
        self._shape = shape
        self._random = random.Random(shape.name)  # noqa: S311 the same figures in each run
        self._sizes = [_commit_size(shape.before)] if shape.before else []
        self._commit = 0
        self._names = 0

    def plan(self, commit: Commit, sizing: SizingSettings, planner: Planner) -> Sequence[PlannedFile]:
        files = tuple(self.found.files.values())
        profile = WorkloadProfile(
            incoming=tuple(IncomingRows(each.partition, each.rows, each.plain_bytes) for each in commit),
            sample=None if files else _sample(commit),
            commits=tuple(self._sizes[:COMMITS_MAX]),
        )
        return planner(profile, files, sizing).files

    def append(self, commit: Commit, planned: Sequence[PlannedFile]) -> None:
        """Write the files, in the order in which they are planned."""
        self._commit += 1
        arrivals = {arrival.partition: arrival for arrival in commit}
        added: list[DataFile] = []
        for partition, its_files in groupby(planned, key=attrgetter("partition")):
            mine = [pair for file in its_files for pair in self._files(file, arrivals[partition])]
            self._note(mine)
            added += (file for file, _ in mine)
        assert sum(file.rows for file in planned) == sum(arrival.rows for arrival in commit), "a plan has every row"
        for file in planned:
            if file.fill is not None:
                del self.found.files[file.fill.path]
                self.found.rewritten_bytes += file.fill.bytes
        self.found.files.update((file.path, file) for file in added)
        self.found.inserted_bytes += sum(arrival.bytes for arrival in commit)
        self._sizes.insert(0, _commit_size(added))

    def _note(self, files: Sequence[tuple[DataFile, PlannedFile]]) -> None:
        for number, (file, planned) in enumerate(files, 1):
            is_last = number == len(files)
            self.found.written.append(Written(self._commit, file.bytes, planned.bytes, is_last))

    def _files(self, planned: PlannedFile, arrival: Arrival) -> Iterator[tuple[DataFile, PlannedFile]]:
        old, share = planned.fill, planned.rows / arrival.rows
        size = share * arrival.bytes * self._random.gauss(1, self._shape.variation) + (old.bytes if old else 0)
        rows = planned.rows + (old.rows if old else 0)
        plain = share * arrival.plain_bytes + (old.plain_bytes if old else 0)
        for number, piece in enumerate(self._pieces(size, is_planned=planned.bytes > 0)):
            self._names += 1
            yield (
                DataFile(
                    planned.partition,
                    f"{self._names:08d}_0_{self._commit:017d}.parquet",
                    round(rows * piece / size),
                    round(piece),
                    round(plain * piece / size),
                    old.rewritten_bytes + old.bytes if old and not number else 0,
                ),
                planned,
            )

    def _pieces(self, size: float, *, is_planned: bool) -> Iterator[float]:
        roll = self._shape.max_file_bytes * (PLANNED_FULL if is_planned else 1)
        while size > 0:
            yield min(size, roll)
            size -= roll
            roll = self._shape.max_file_bytes


def _sample(commit: Commit) -> Sample:
    """As large a share of each partition."""
    rows, plain = sum(each.rows for each in commit), sum(each.plain_bytes for each in commit)
    share = min(1.0, SAMPLE_ROWS / rows)
    encoded = sum(each.bytes for each in commit)
    return Sample(round(rows * share), round(plain * share), round(encoded * share))


def _commit_size(files: Iterable[DataFile]) -> CommitSize:
    found = tuple(files)
    return CommitSize(sum(file.rows for file in found), sum(file.bytes for file in found))
