"""Partitions that get files, and when their files are worth a look. Pure: the caller has the clock.

Owns: when. Does not own: which files are merged (``merge_policy``).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice, takewhile
from math import inf

from tallymark.engine.timeline.entry import DataFile

LOOK_COUNT = 8
"""New files of a partition after which it is due: half of what ``merge_policy.FAN_IN`` merges."""

LOOK_SHARE = 1 / 8
"""Share of the target that new files of a partition have together when it is due before that."""

PARTITIONS_AT_ONCE = 64
"""Partitions that are returned at once: the end of a stream of many partitions needs few commits."""


@dataclass(slots=True)
class _Waiting:
    count: int = 0
    bytes: int = 0
    """New files since the partition was looked at last."""
    added_at: float = -inf


class DuePartitions:
    def __init__(self, *, target_bytes: int, quiet_s: float) -> None:
        self._target_bytes = target_bytes
        self._quiet_s = quiet_s
        self._waiting: dict[str, _Waiting] = {}
        """The one that got files last is last."""
        self._due: dict[str, None] = {}

    def added(self, files: Iterable[DataFile], *, now: float) -> None:
        """Record files that were added to the table."""
        for file in files:
            found = self._waiting.pop(file.partition, None) or _Waiting()
            self._waiting[file.partition] = found
            found.count += 1
            found.bytes += file.bytes
            found.added_at = now
            if self._is_due(found):
                self._due[file.partition] = None

    def take(self, *, now: float, is_ending: bool = False) -> Mapping[str, bool]:
        """Return partitions to look at, each with whether it is quiet: all are when the stream ends. They are returned
        again until they are ``done``.
        """
        if is_ending:
            found = dict.fromkeys(islice(self._waiting, PARTITIONS_AT_ONCE), True)
        elif self._due:
            found = dict.fromkeys(islice(self._due, PARTITIONS_AT_ONCE), False)
        else:
            quiet = takewhile(lambda each: now - each[1].added_at >= self._quiet_s, self._waiting.items())
            found = {partition: True for partition, _ in islice(quiet, PARTITIONS_AT_ONCE)}
        for partition in found:
            waiting = self._waiting[partition]
            waiting.count = waiting.bytes = 0
        return found

    def next_due_s(self, *, now: float) -> float:
        """Return after how many seconds a partition is due, if no file is added until then."""
        if self._due:
            return 0
        oldest = next(iter(self._waiting.values()), None)
        return inf if oldest is None else max(0.0, oldest.added_at + self._quiet_s - now)

    def done(self, partition: str, *, is_quiet: bool) -> None:
        """Record that nothing was to be merged in the partition; a quiet one is forgotten, if no file was added since
        it was taken.
        """
        waiting = self._waiting[partition]
        if not self._is_due(waiting):
            self._due.pop(partition, None)
        if is_quiet and not waiting.count:
            self._due.pop(partition, None)
            del self._waiting[partition]

    def _is_due(self, waiting: _Waiting) -> bool:
        return waiting.count >= LOOK_COUNT or waiting.bytes >= LOOK_SHARE * self._target_bytes
