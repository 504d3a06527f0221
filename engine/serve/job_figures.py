"""How fast a service acks the markers of each job: what its page shows of live jobs."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import anyio

from tallymark.backends.errors import TallymarkError
from tallymark.engine.documents.jobs import LiveFields
from tallymark.engine.markers.histogram import Histogram
from tallymark.engine.rpc.dispatcher import Outcome, Settle
from tallymark.engine.rpc.messages import CreateMarkers

BOUNDS_S = tuple(0.0001 * 1.25**step for step in range(58))
"""Upper bounds of the times of acks, a quarter apart, from 0.1 ms to 33 s: a quantile is a quarter too large at most.
"""

RATE_S = 10
"""Seconds over which a rate is averaged."""

SILENT_S = 60.0
"""Time after its last request for which the figures of a job are kept."""


@dataclass(slots=True)
class _Figures:
    times: Histogram = field(default_factory=lambda: Histogram(BOUNDS_S))
    markers: int = 0
    recent: deque[tuple[float, int]] = field(default_factory=deque)
    """When markers were acked, and how many, within ``RATE_S``."""
    last: float = -math.inf


class JobFigures:
    """Belongs to one event loop. Jobs have the names that ``job_name`` gives them."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Figures] = {}

    def measured(self, job: str, settle: Settle[CreateMarkers]) -> Settle[CreateMarkers]:
        """Return the same, which records the requests that arrive now once they are acked."""
        started = anyio.current_time()
        figures = self._jobs.setdefault(job, _Figures())
        figures.last = started

        async def settled(outcomes: Sequence[tuple[CreateMarkers, Outcome]]) -> None:
            now = anyio.current_time()
            acked = [request for request, outcome in outcomes if not isinstance(outcome, TallymarkError)]
            for _ in acked:
                figures.times.add(now - started)
            count = sum(len(request.paths) for request in acked)
            figures.markers += count
            figures.recent.append((now, count))
            _drop_older(figures.recent, now - RATE_S)
            await settle(outcomes)

        return settled

    def report(self, connections: Mapping[str, int]) -> dict[str, LiveFields]:
        """Return the figures of each job, with the connections of its tasks; forget those of jobs that are silent."""
        now = anyio.current_time()
        for job in [job for job, each in self._jobs.items() if now - each.last > SILENT_S and not connections.get(job)]:
            del self._jobs[job]
        return {job: _fields(each, connections.get(job, 0), now) for job, each in self._jobs.items()}


def _fields(figures: _Figures, tasks: int, now: float) -> LiveFields:
    _drop_older(figures.recent, now - RATE_S)
    return {
        "tasks": tasks,
        "markers": figures.markers,
        "acks_s": sum(count for _, count in figures.recent) / RATE_S,
        "p50_s": _quantile(figures.times, 0.50),
        "p99_s": _quantile(figures.times, 0.99),
    }


def _drop_older(recent: deque[tuple[float, int]], moment: float) -> None:
    while recent and recent[0][0] < moment:
        recent.popleft()


def _quantile(times: Histogram, share: float) -> float | None:
    """Return the upper bound of the bucket with the nearest rank; None without values."""
    sums = list(accumulate(times.counts))
    if not sums[-1]:
        return None
    rank = math.ceil(share * sums[-1])
    return (*times.bounds, 2 * times.bounds[-1])[next(place for place, each in enumerate(sums) if each >= rank)]
