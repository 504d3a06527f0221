"""What all write jobs of this process have done, and do now.

Owns: sums that never fall, over jobs that have ended and jobs that run. Does not own: how they are shown
(``prometheus``). It is the process's, as a scrape is: no job need be told of it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tallymark.backends.contract import Backend
from tallymark.backends.meter import RequestStatistics
from tallymark.backends.retrying import Metered
from tallymark.engine.metrics.job_meter import JobMeter, Key, Reading


@dataclass(slots=True)
class _Watched:
    """A backend that jobs use, and what it had counted before the first of them."""

    backend: Backend
    before: dict[Key, float]
    jobs: int = 0


class ProcessMeter:
    """Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended = Reading()
        self._jobs: set[JobMeter] = set()
        self._watched: dict[int, _Watched] = {}

    @contextmanager
    def running(self, job: JobMeter, backend: Backend) -> Iterator[None]:
        """For the time of the block the job runs, and the requests of its backend count, once for all its jobs."""
        with self._lock:
            self._jobs.add(job)
            watched = self._watched.setdefault(id(backend), _Watched(backend, _requests(backend)))
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
        """One more of something that is no job's own."""
        with self._lock:
            self._ended.counts[name,] += 1

    def reading(self) -> Reading:
        """All that there is to add, and the number of ``jobs_running``."""
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
    """Empty where the store does not count its requests."""
    statistics: RequestStatistics | None = backend.statistics() if isinstance(backend, Metered) else None
    if statistics is None:
        return {}
    found: dict[Key, float] = {
        ("storage_requests", each.request_class, outcome): count
        for each in statistics.classes
        for outcome, count in each.outcomes.items()
    }
    return found | {("storage_retries",): statistics.retries}
