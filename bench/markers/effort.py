"""How much is measured."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tallymark.bench.markers.load import Load

QUIET, MANY = 32, 240
"""Callers: some, and as many as a job with that many cores has tasks."""

RATE = 200.0
"""Markers a second that the few callers ask for: each a marker in 160 ms, so that who takes 50 ms for one is not late
for the next. More would measure how callers queue behind their own requests."""

INTERVALS_MS = (1, 2, 5, 10, 20)
"""Of Hudi's server, tried with its own number of threads."""

THREADS = (5, 100)
"""Of the same, tried with the best of the intervals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    rounds: int = 3
    """All sides in turn, beginning with another each time."""
    seconds: float = 5.0
    """Of each load of each side in each round."""
    warm_up_s: float = 1.0
    """Before those, in each round."""
    first_s: float = 3.0
    """Once for each side, before all rounds, as fast as it answers: a JVM has to be asked for a while."""
    filling: Sequence[int] = (1_000, 20_000, 165_000)
    """Markers of whole jobs, beside each other."""
    pace_minutes: float = 10.0
    """Of a whole job at the pace of jobs: markers come as often as makes the largest of ``filling`` in that time."""
    published: Sequence[int] = (1_000, 165_000)
    """Markers of the jobs of the published table."""
    intervals_ms: Sequence[int] = INTERVALS_MS
    threads: Sequence[int] = THREADS
    recovered: Sequence[int] = (1_000, 165_000, 1_000_000)
    """Markers that a crashed service has left."""
    recoveries: int = 3
    """Of each."""
    throughput_s: float = 10.0
    flushes: int = 300
    """On the virtual clock, for each load."""
    cost_runs: int = 5
    """Of acks over puts, for each load; the worst is told."""
    cost_s: float = 2.5
    callers: int = MANY
    few: int = QUIET
    rate: float = RATE

    @property
    def loads(self) -> tuple[Load, ...]:
        """An open one for how long a marker takes, and a closed one for how many there may be."""
        seconds, warm_up_s = self.seconds, self.warm_up_s
        return (
            Load(connections=self.few, rate=self.rate, seconds=seconds, warm_up_s=warm_up_s),
            Load(connections=self.callers, seconds=seconds, warm_up_s=warm_up_s),
        )

    @property
    def first(self) -> Load:
        return Load(connections=self.few, seconds=self.first_s)

    @property
    def trial(self) -> Load:
        """Of a setting of Hudi's server."""
        return Load(connections=self.few, rate=self.rate, seconds=self.seconds / 2, warm_up_s=self.warm_up_s)

    @property
    def paced(self) -> Load:
        seconds = self.pace_minutes * 60
        return Load(connections=self.few, processes=1, rate=max(self.filling) / seconds, seconds=seconds)

    def up_to(self, markers: int) -> "Effort":
        """With no jobs of more markers than these, and one of as many."""
        return replace(
            self,
            filling=(*(each for each in self.filling if each < markers), markers),
            published=(*(each for each in self.published if each < markers), markers),
        )

    def filled(self, count: int) -> Load:
        return Load(connections=self.callers, count=count)


QUICK = Effort(
    rounds=1,
    seconds=1.0,
    warm_up_s=0.5,
    first_s=0.5,
    filling=(300, 3_000),
    pace_minutes=0.1,
    published=(200, 1_000),
    intervals_ms=(5,),
    threads=(),
    recovered=(1_000,),
    recoveries=1,
    throughput_s=1.0,
    flushes=10,
    cost_runs=1,
    cost_s=0.5,
    callers=64,
)
"""Long enough to see that everything answers, and too short for any figure."""
