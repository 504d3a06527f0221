"""Many seeds, in a few processes."""

import logging
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context

from tests.history import Told
from tests.simulation.kind import AnyOutcome, AnyPlan, draw, judge, run
from tests.simulation.occurrences import occurrences

CHUNK = 50
"""Seeds that a process plays before it says what came of them."""


@dataclass
class Totals:
    """What a campaign adds up to."""

    seeds: int = 0
    steps: int = 0
    job_s: float = 0.0
    """Simulated seconds of write jobs."""
    told: Counter[str] = field(default_factory=Counter)
    """How writes ended, in the writers' own view."""
    occurred: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    """How often each of ``occurrences.FAILURES`` has been gone through."""
    cpu_s: float = 0.0
    """Of all processes, judging and shrinking included."""
    real_s: float = 0.0

    def add(self, outcome: AnyOutcome) -> None:
        self.seeds += 1
        self.steps += outcome.steps
        self.job_s += outcome.job_s
        self.told.update(event.outcome for event in outcome.history.of(Told))
        self.occurred += outcome.occurred
        self.failures += occurrences(outcome)

    def merge(self, other: "Totals") -> None:
        self.seeds += other.seeds
        self.steps += other.steps
        self.job_s += other.job_s
        self.told += other.told
        self.occurred += other.occurred
        self.failures += other.failures
        self.cpu_s += other.cpu_s


@dataclass(frozen=True, slots=True)
class Finding:
    """A run in which a promise was broken."""

    plan: AnyPlan
    error: str


class Campaign:
    def __init__(self, seeds: Sequence[int], *, processes: int) -> None:
        self._seeds = seeds
        self._processes = processes
        self.totals = Totals()

    def findings(self, progressed: Callable[[Totals], None] = lambda _: None) -> Iterator[Finding]:
        """Play the seeds; yield those that break a promise as they come up. ``totals`` grows meanwhile, and is told."""
        began = time.monotonic()
        chunks = [self._seeds[start : start + CHUNK] for start in range(0, len(self._seeds), CHUNK)]
        with get_context("forkserver").Pool(self._processes) as pool:
            for totals, findings in pool.imap_unordered(_play_chunk, chunks):
                self.totals.merge(totals)
                self.totals.real_s = time.monotonic() - began
                progressed(self.totals)
                yield from findings


def examine(plan: AnyPlan) -> str | None:
    """Play the plan once; returns what it broke, or None."""
    try:
        judge(run(plan))
    except Exception as error:
        return _told(error)
    return None


def _told(error: Exception) -> str:
    """A broken promise tells its history; a fault that no promise foresees, where it came from."""
    if isinstance(error, AssertionError):
        return f"{type(error).__name__}: {error}"
    return f"{type(error).__name__}: {error}\n" + "".join(traceback.format_exception(error))


def _play_chunk(seeds: Sequence[int]) -> tuple[Totals, list[Finding]]:
    logging.disable()
    began = time.process_time()
    totals, findings = Totals(), []
    for seed in seeds:
        plan = draw(seed)
        try:
            outcome = run(plan)
            totals.add(outcome)
            judge(outcome)
        except Exception as error:  # a broken promise, or a fault that no promise foresees
            findings.append(Finding(plan, _told(error)))
    totals.cpu_s = time.process_time() - began
    return totals, findings
