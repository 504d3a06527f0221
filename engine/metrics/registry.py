"""Counters of this process: its write jobs, running and ended, and its marker engines."""

import re
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from tallymark.backends.contract import Backend
from tallymark.backends.meter import RequestStatistics
from tallymark.backends.retrying import Metered
from tallymark.engine.markers.histogram import Histogram
from tallymark.engine.markers.process_markers import ProcessReading
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.timeline.entry import LogEntry

Outcome = Literal["committed", "rolled_back", "failed"]
"""``failed``: the job could not start, or storage did not answer at its end, and the next writer finishes it or rolls
it back.
"""

Key = tuple[str, ...]
"""The name of a counter in ``prometheus.METRICS``, and the values of its labels."""


def no_counts() -> defaultdict[Key, float]:
    return defaultdict(float)


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters and gauges, and histograms by their names."""

    counts: defaultdict[Key, float] = field(default_factory=no_counts)
    histograms: dict[str, Histogram] = field(default_factory=dict)

    def add(self, counts: Mapping[Key, float], *, sign: Literal[1, -1] = 1) -> None:
        for key, value in counts.items():
            self.counts[key] += sign * value


class JobMeter:
    """Owned by the job's event loop; any thread may call ``reading``."""

    def __init__(self, operation: str) -> None:
        self._operation = operation
        self._counts = no_counts()
        self._proposed: dict[Key, float] = {}
        self._outcome: Outcome = "failed"

    def proposed(self, entry: LogEntry) -> None:
        """Record the entry that is put in the log; the last one counts, once it is ``committed``."""
        changes = entry.summary.changes if entry.summary else None
        rewritten = sum(file.bytes for file in entry.filled) if changes is None else changes.rewritten_bytes
        self._proposed |= {
            ("committed_rows",): entry.new_rows,
            ("committed_bytes",): sum(file.bytes for file in entry.added),
            ("committed_files",): len(entry.added),
            ("replaced_files",): len(entry.removed),
            ("filled_files",): len(entry.filled),
            ("rewritten_bytes",): rewritten,
            ("lost_fills",): entry.summary.sizing.lost_fills if entry.summary and entry.summary.sizing else 0,
        }
        if changes is not None:
            self._proposed |= {
                ("changed_rows", "inserted"): changes.inserted,
                ("changed_rows", "updated"): changes.updated,
                ("changed_rows", "deleted"): changes.deleted,
                ("changed_rows", "ignored"): changes.ignored,
                ("looked_up_bytes",): changes.looked_up_bytes,
            }

    def reported(self, winners: Sequence[TaskReport]) -> None:
        """Count the reports of the tasks of the job; they count with its entry."""
        self._proposed |= {
            ("tasks",): len(winners),
            ("task_seconds",): sum(report.seconds for report in winners),
            ("task_marker_wait_seconds",): sum(report.marker_wait_s for report in winners),
            ("markers", "direct"): sum(report.direct_markers for report in winners),
        }

    def committed(self) -> None:
        self._outcome = "committed"
        self._counts.update(self._proposed)

    def count_look_up(self) -> None:
        """Count a lookup of a task."""
        self._counts["look_ups",] += 1

    def conflicted(self) -> None:
        self._counts["conflicts",] += 1

    def rolled_back(self) -> None:
        self._outcome = "rolled_back"

    def ended(self) -> None:
        self._counts["jobs", self._operation, self._outcome] += 1

    def reading(self) -> Reading:
        """Return the counts so far; the job may continue. Its markers are counted with those of all engines
        (``process_markers``).
        """
        return Reading(self._counts.copy())


_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


def marker_metrics(found: ProcessReading) -> Reading:
    counts = found.counts
    reading = Reading(
        histograms={
            "marker_ack_seconds": found.acks,
            "marker_put_seconds": counts.put_times,
            "marker_batch_size": counts.batch_sizes,
        }
    )
    reading.add(
        {
            ("markers", "batched"): counts.markers - counts.direct_markers,
            ("markers", "direct"): counts.direct_markers,
            ("markers_waiting",): found.waiting,
            ("markers_inflight",): found.inflight,
            ("marker_requests",): counts.requests,
            ("marker_batches_failed",): counts.batches_failed,
            ("marker_puts",): counts.puts,
            ("marker_put_bytes",): counts.put_bytes,
            ("marker_bytes",): counts.marker_bytes,
            ("marker_hedges",): counts.hedges,
            ("marker_hedges_won",): counts.hedges_won,
            ("marker_throttles",): counts.throttled,
            ("marker_merges", "merged"): counts.merges,
            ("marker_merges", "failed"): counts.merges_failed,
            ("marker_merged_segments",): counts.merged_segments,
            ("marker_segments",): found.segments,
            ("marker_interval_seconds",): found.interval_s,
            ("marker_late_seconds",): found.late_s,
        }
    )
    reading.add({("marker_refusals", _word(error)): count for error, count in counts.refusals_by.items()})
    return reading


def _word(error: str) -> str:
    """Return the label of an error class: ``rolled_back`` for ``RolledBack``."""
    return _WORD_START.sub("_", error).lower()


@dataclass(slots=True)
class _Watched:
    """A backend that jobs use, and its counts before the first of them."""

    backend: Backend
    before: dict[Key, float]
    jobs: int = 0


class ProcessMeter:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended = Reading()
        self._jobs: set[JobMeter] = set()
        self._watched: dict[int, _Watched] = {}

    @contextmanager
    def running(self, job: JobMeter, backend: Backend) -> Iterator[None]:
        """Count the job as running during the block, and the requests of its backend, once for all its jobs."""
        with self._lock:
            self._jobs.add(job)
            if (watched := self._watched.get(id(backend))) is None:
                watched = self._watched[id(backend)] = _Watched(backend, _requests(backend))
            watched.jobs += 1
        try:
            yield
        finally:
            job.ended()
            with self._lock:
                self._jobs.discard(job)
                _add_job(self._ended, job)
                watched.jobs -= 1
                if not watched.jobs:
                    _add_requests(self._ended, self._watched.pop(id(backend)))

    def count(self, name: str) -> None:
        """Count one more of something that belongs to no job."""
        with self._lock:
            self._ended.counts[name,] += 1

    def reading(self) -> Reading:
        """Return the sums, and the number of ``jobs_running``."""
        with self._lock:
            found = Reading()
            found.add(self._ended.counts)
            for job in self._jobs:
                _add_job(found, job)
            for watched in self._watched.values():
                _add_requests(found, watched)
            found.counts["jobs_running",] = len(self._jobs)
            return found


PROCESS = ProcessMeter()


def _add_job(total: Reading, job: JobMeter) -> None:
    total.add(job.reading().counts)


def _add_requests(total: Reading, watched: _Watched) -> None:
    total.add(_requests(watched.backend))
    total.add(watched.before, sign=-1)


def _requests(backend: Backend) -> dict[Key, float]:
    """Return the request counts; empty where the store has none."""
    statistics: RequestStatistics | None = backend.statistics() if isinstance(backend, Metered) else None
    if statistics is None:
        return {}
    found: dict[Key, float] = {
        ("storage_requests", each.request_class, outcome): count
        for each in statistics.classes
        for outcome, count in each.outcomes.items()
    }
    return found | {("storage_retries",): statistics.retries}
