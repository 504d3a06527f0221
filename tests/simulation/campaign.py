"""Many seeds in several processes, and the report about them."""

import logging
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.history import Told
from tests.simulation.kind import AnyOutcome, AnyPlan, draw, judge, run, shown
from tests.simulation.occurrences import FAILURES, missing, occurrences
from tests.simulation.shrink import shrink

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
    """How often each of ``occurrences.FAILURES`` has occurred."""
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
        """Play the seeds; yield those that break a promise. ``totals`` grows during that, and is reported."""
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
        return _record_result(error)
    return None


def _record_result(error: Exception) -> str:
    """Return the history of a broken promise, or the traceback of any other fault."""
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
            findings.append(Finding(plan, _record_result(error)))
    totals.cpu_s = time.process_time() - began
    return totals, findings


SEEDS_MIN = 2000
"""What CI plays. So many are to go through every failure at least once; fewer may miss the rare ones."""

console = Console(highlight=False, soft_wrap=True)


@contextmanager
def show_progress(seeds: int) -> Iterator[Callable[[Totals], None]]:
    """Show a bar on a terminal, elsewhere a line at each tenth."""
    if console.is_terminal:
        with Progress(console=console) as progress:
            bar = progress.add_task("seeds", total=seeds)
            yield lambda totals: progress.update(bar, completed=totals.seeds)
        return
    told = 0

    def tell(totals: Totals) -> None:
        nonlocal told
        if totals.seeds * 10 // seeds > told:
            told = totals.seeds * 10 // seeds
            console.print(f"{totals.seeds} seeds in {totals.real_s:.0f} s")

    yield tell


def print_finding(finding: Finding) -> None:
    """The smallest run that breaks the same promise, its history, and how to see it again."""
    broken = _kind(finding.error)
    smaller = shrink(finding.plan, lambda plan: _kind(examine(plan) or "") == broken)
    console.rule(f"seed {finding.plan.seed} breaks a promise")
    console.print(examine(smaller) or finding.error, markup=False)
    console.print(f"\nThe smallest plan that was found to break it:\n{_shown(smaller)}", markup=False)
    console.print(f"\nreplay it: nox -s simulate -- --seed {finding.plan.seed}\n", markup=False)


def print_summary(totals: Totals) -> None:
    table = Table("what happened", "times", title=f"{totals.seeds} seeds, {totals.steps:,} steps")
    table.columns[1].justify = "right"
    for name, times in sorted(totals.told.items()):
        table.add_row(f"a writer is told: {name}", f"{times:,}")
    for name, times in sorted(totals.occurred.items()):
        table.add_row(name, f"{times:,}")
    table.add_section()
    for name in FAILURES:
        table.add_row(name, f"{totals.failures[name]:,}")
    console.print(table)
    rate = totals.seeds / totals.real_s if totals.real_s else 0.0
    console.print(
        f"{totals.seeds} seeds in {totals.real_s:.0f} s ({rate:.0f} a second, {totals.cpu_s:.0f} s of CPU), "
        f"{totals.job_s / 3600:,.1f} hours of simulated write jobs"
    )


def print_missing(totals: Totals) -> list[str]:
    """What a campaign that was long enough should have been through and was not."""
    names = missing(totals.failures) if totals.seeds >= SEEDS_MIN else []
    for name in names:
        console.print(f"never occurred in {totals.seeds} seeds, so it was not tested: {name}", markup=False)
    if names:
        console.print("change what tests/simulation/plan.py draws, so that it does")
    return names


def _kind(error: str) -> str:
    """The first line without what differs from run to run: names, times and numbers."""
    line = error.partition("\n")[0]
    return " ".join(word for word in line.split() if word.isalpha())


def _shown(plan: AnyPlan) -> str:
    lines = [f"  seed {plan.seed}, {'staging' if plan.has_staging else 'object store'}, {plan.faults}"]
    lines += [f"  {part}" for part in shown(plan)]
    return "\n".join(lines)
