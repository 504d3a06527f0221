"""Part ``one-append``: how long an append takes where nothing else is written, in times of what storage takes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from tallymark.bench.commits.measure import Ground, by_verb, verbs
from tallymark.bench.commits.sides import SIDES
from tallymark.bench.commits.writers import Runs, present, rounds
from tallymark.bench.load import Seen
from tallymark.bench.paired import Estimate, compare
from tallymark.bench.results import Chart, Table, column, seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendRow:
    """One writer that appends to its table, each time after the answer before."""

    title: str = column("")
    p50_s: float = column("median", seconds)
    p99_s: float = column("99 %", seconds)
    in_latencies: float | None = column("median, in latencies", "{:,.1f}".format)
    """Of the stand-in's requests."""
    over_floor: Estimate | None = column("times the floor")
    """On a local disk, within each round."""
    over_ours: Estimate | None = column("times Tallymark")
    appends: int = column("appends")
    cpu_s: float = column("CPU/append", seconds)
    by_verb: Mapping[str, float] = column("requests/append", verbs)

    @classmethod
    def of(cls, title: str, runs: Runs, latency_s: float) -> "AppendRow":
        """``latency_s``: of a request; 0 on a local disk."""
        found = reduce(add, runs[title])
        return cls(
            title=title,
            p50_s=found.latency.p50_s,
            p99_s=found.latency.p99_s,
            in_latencies=found.latency.p50_s / latency_s if latency_s else None,
            over_floor=_over(runs[title], runs.get(SIDES["floor"].title)),
            over_ours=_over(runs[title], runs.get(SIDES["ours"].title)),
            appends=found.answered,
            cpu_s=found.caller_cpu_s / found.answered,
            by_verb={verb: number / found.answered for verb, number in by_verb(found).items()},
        )


def _over(runs: Sequence[Seen], others: Sequence[Seen] | None) -> Estimate | None:
    """Return the ratio of the medians within each round; None beside itself and beside a side that is absent."""
    if not others or runs is others:
        return None
    return compare(*([seen.latency.p50_s for seen in side] for side in (runs, others))).ratio


def tables(ground: Ground) -> Iterator[Table]:
    sides, absent = present(ground)
    runs = rounds(ground, sides, 1, absent)
    yield Table(
        title=f"one append, {ground.place.where}",
        rows=[AppendRow.of(title, runs, ground.place.latency_s) for title in runs],
        charts=(Chart(values=("p50_s", "p99_s"), axis="s"),),
        absent=absent,
    )
