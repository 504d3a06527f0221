"""Totals of all marker directories of this process, in every engine.

Owns: sums that never decrease, over directories that are served and those that were. They are per process, as a scrape
is: no engine has to register, and an engine that serves no table is counted like a job's.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tallymark.engine.markers.ack_times import AckTimes
from tallymark.engine.markers.directory import MarkerDirectory
from tallymark.engine.markers.statistics import MarkerCounts


@dataclass(slots=True, kw_only=True)
class ProcessReading:
    """``counts`` and ``acks`` since the process began, the rest as it is now."""

    counts: MarkerCounts = field(default_factory=MarkerCounts)
    acks: AckTimes = field(default_factory=AckTimes)
    waiting: int = 0
    inflight: int = 0
    segments: int = 0
    interval_s: float = 0.0
    """The largest among the directories."""
    late_s: float = 0.0
    """Likewise."""

    def add(self, directory: MarkerDirectory) -> None:
        """Add a directory. One that is no longer served contributes its counts only."""
        self.counts.add_all(directory.counts)
        self.acks.add_all(directory.ack_times)


class ProcessMarkers:
    """Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._past = ProcessReading()
        self._served: set[MarkerDirectory] = set()

    @contextmanager
    def counting(self, directory: MarkerDirectory) -> Iterator[None]:
        """Count the directory as served during the block; its counts remain afterwards."""
        with self._lock:
            self._served.add(directory)
        try:
            yield
        finally:
            with self._lock:
                self._served.discard(directory)
                self._past.add(directory)

    def reading(self) -> ProcessReading:
        with self._lock:
            served = tuple(self._served)
            found = _now(served)
            found.counts.add_all(self._past.counts)
            found.acks.add_all(self._past.acks)
            for directory in served:
                found.add(directory)
            return found


def _now(served: Iterable[MarkerDirectory]) -> ProcessReading:
    return ProcessReading(
        waiting=sum(directory.queue.waiting for directory in served),
        inflight=sum(directory.queue.inflight for directory in served),
        segments=sum(directory.segment_count for directory in served),
        interval_s=max((directory.pace.interval_s for directory in served), default=0.0),
        late_s=max((directory.hedge.late_s or 0.0 for directory in served), default=0.0),
    )


PROCESS_MARKERS = ProcessMarkers()
