"""The engine's lookup and merge on a small table, and on one that is a hundred times as large."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tallymark.bench.paired import Estimate, compare
from tallymark.bench.results import Chart, Table, column, seconds
from tallymark.bench.upserts.case import UpsertCase
from tallymark.bench.upserts.step import Step, steps, verdict
from tallymark.bench.writes.hands import Hands
from tallymark.bench.writes.question import figure
from tallymark.bench.writes.rounds import RoundMethod, take_rounds

GROWTH_BAR = 1.1

LOOKUP, MERGE = "lookup_s", "write_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthRow:
    title: str = column("")
    lookup_s: float = column("lookup", seconds)
    write_s: float = column("merge and encoding", seconds)
    of_smaller: Estimate | None = column("both / those of the smaller")
    is_in_bar: str | None = column("in the bar")


def grown(
    cases: Sequence[UpsertCase], engine: Hands, folder: Path, method: RoundMethod, progress: Callable[[str], None]
) -> Table:
    """Measure the engine's lookup and merge on a small table and on a large one of equal files."""
    wanted: list[Step] = []
    for case in cases:
        progress(f"growth: {case.label}")
        case.write(folder / f"source-{case.rows}")
        step, *_ = steps(case, engine, folder / f"source-{case.rows}", folder / f"tables-{case.rows}")
        shutil.rmtree(folder / f"source-{case.rows}" / "table")
        wanted.append(replace(step, name=f"{case.rows:,} rows in {case.files} files"))
    taken = take_rounds(wanted, method, done=lambda name: progress(f"growth: {name}"))
    both = [
        [float(done.figures["lookup_s"]) + float(done.figures["write_s"]) for done in its] for its in taken.values()
    ]
    ratios = [None, compare(both[1], both[0]).ratio]
    bars = [None, compare(both[1], [GROWTH_BAR * each for each in both[0]]).ratio]
    rows = [
        GrowthRow(
            title=name,
            lookup_s=figure(its, LOOKUP) or 0.0,
            write_s=figure(its, MERGE) or 0.0,
            of_smaller=ratio,
            is_in_bar=verdict(bar),
        )
        for (name, its), ratio, bar in zip(taken.items(), ratios, bars, strict=True)
    ]
    title = f"C on a larger table, of two columns: {cases[0].batch:,} rows come; bar {GROWTH_BAR:g}"
    return Table(title=title, rows=rows, charts=(Chart(values=(LOOKUP, MERGE), axis="seconds"),))
