"""What a person reads of a campaign."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.simulation.campaign import Finding, Totals, examine
from tests.simulation.kind import AnyPlan, shown, smaller_plans
from tests.simulation.occurrences import FAILURES, missing
from tests.simulation.shrink import shrink

SEEDS_MIN = 2000
"""What CI plays. So many are to go through every failure at least once; fewer may miss the rare ones."""

console = Console(highlight=False, soft_wrap=True)


@contextmanager
def show_progress(seeds: int) -> Iterator[Callable[[Totals], None]]:
    """A bar where somebody looks on; elsewhere a line at each tenth."""
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
    smaller = shrink(finding.plan, lambda plan: _kind(examine(plan) or "") == broken, smaller_plans)
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
    lines = [f"  seed {plan.seed}, {'staging' if plan.has_staging else 'object store'}, {plan.weather}"]
    lines += [f"  {part}" for part in shown(plan)]
    return "\n".join(lines)
