"""Planned files of one task, and its progress with the small files that it fills.

Owns: which partitions have a planned file, whose old rows are still to be published, and in which files they ended up.
Does not own: reading (``old_rows``) and writing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.sizing.plan import PlannedFile
from tallymark.engine.tasks.report import Fill
from tallymark.engine.timeline.entry import DataFile


@dataclass(slots=True)
class _Underway:
    old: DataFile
    rows_left: int
    """Old rows that are not published yet."""
    paths: tuple[str, ...] = ()


class Filling:
    """The planned files of one attempt of a task."""

    def __init__(self, planned: Sequence[PlannedFile]) -> None:
        """Raises InvalidRequest for two files of one partition: no rule would assign a row to one of them."""
        self._planned: dict[str, PlannedFile] = {}
        for file in planned:
            if self._planned.setdefault(file.partition, file) is not file:
                raise InvalidRequest(
                    f"partition {file.partition!r} has two planned files in one task; give each to a task of its own, "
                    "as tasks_of does"
                )
        self._expected = {file.partition: file.bytes for file in planned}
        """Expected bytes of the planned files that are not published yet; without the rows of missing small files."""
        self._sizes: list[tuple[str, int]] = []
        self._underway: dict[str, _Underway] = {}
        self._done: list[Fill] = []

    def is_planned(self, partition: str) -> bool:
        return partition in self._planned

    def begin(self, partitions: Iterable[str]) -> list[DataFile]:
        """Return the small files to be filled in the partition that no earlier call has returned."""
        found = []
        for partition in partitions:
            planned = self._planned.get(partition)
            if planned is not None and planned.fill is not None:
                self._planned[partition] = replace(planned, fill=None)
                self._expected[partition] -= planned.fill.bytes
                found.append(planned.fill)
        return found

    def took(self, old: DataFile) -> None:
        """Record that all rows of this small file were passed on, before any other row of its partition."""
        self._underway[old.partition] = _Underway(old, old.rows)
        self._expected[old.partition] += old.bytes

    def published(self, file: DataFile) -> DataFile:
        """Return the published file with the cost of its rewrites. Files of a partition are published in the order of
        their rows.
        """
        expected = self._expected.pop(file.partition, None)
        if expected is not None:
            self._sizes.append((file.path, expected))
        underway = self._underway.get(file.partition)
        if underway is None:
            return file
        cost = 0 if underway.paths else underway.old.rewritten_bytes + underway.old.bytes
        underway.paths += (file.path,)
        underway.rows_left -= file.rows
        if underway.rows_left <= 0:
            self._done.append(Fill(underway.old, underway.paths))
            del self._underway[file.partition]
        return replace(file, rewritten_bytes=cost)

    @property
    def sizes(self) -> tuple[tuple[str, int], ...]:
        """Return the expected bytes of the planned files, by the path of each one's first published file."""
        return tuple(self._sizes)

    @property
    def done(self) -> tuple[Fill, ...]:
        assert not self._underway, "a task that is over has published all rows"
        return tuple(self._done)
