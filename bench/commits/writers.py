"""Part ``writers``: independent writers, each with its own table object, in as many processes as there are cores."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tallymark.bench.child import ChildFailed
from tallymark.bench.commits.measure import CommitRow, Ground, measure, rate
from tallymark.bench.commits.sides import SIDES, Writer, is_installed
from tallymark.bench.load import Seen
from tallymark.bench.method import rotated
from tallymark.bench.paired import Estimate, compare
from tallymark.bench.results import Chart, Table, column

Runs = Mapping[str, Sequence[Seen]]
"""By the title of the side, in the order of the rounds."""

CHARTS = tuple(
    Chart(values=(value,), x="writers", axis="writers", is_log=True) for value in ("commits_per_s", "p50_s", "p99_s")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideRow:
    """Ours against another side, within each round; above 1 is in our favour."""

    title: str = column("")
    writers: int = column("writers")
    rate: Estimate = column("times as many commits/s")
    p50: Estimate = column("median, times lower")
    p99: Estimate = column("99 %, times lower")


def tables(ground: Ground) -> Iterator[Table]:
    rows: list[CommitRow] = []
    ratios: list[BesideRow] = []
    sides, absent = present(ground)
    for writers in ground.effort.writers:
        runs = rounds(ground, sides, writers, absent)
        rows += [CommitRow.of(title, writers, taken) for title, taken in runs.items()]
        ratios += beside(runs, writers)
    yield Table(title=f"independent writers, {ground.place.where}", rows=rows, charts=CHARTS, absent=absent)
    yield Table(title=f"Tallymark beside the others, {ground.place.where}", rows=ratios)


def present(ground: Ground) -> tuple[Sequence[type[Writer]], dict[str, str]]:
    """Return the sides that can write at this place, and why those of them are absent that are not installed."""
    sides = [side for side in ground.sides if ground.place.folder is not None or not side.is_local]
    return sides, {side.title: "pip install 'tallymark[bench]'" for side in sides if not is_installed(side)}


def rounds(ground: Ground, sides: Sequence[type[Writer]], writers: int, absent: dict[str, str]) -> Runs:
    """Return the runs of those sides whose writers have never failed; the others are absent from then on."""
    runs: dict[str, list[Seen]] = {side.title: [] for side in sides if side.title not in absent}
    for number in range(ground.effort.rounds):
        for side in rotated(sides, number):
            if side.title in absent:
                continue
            ground.progress(f"commits: {side.title}, {writers} writers, {ground.place.where}, round {number + 1}")
            try:
                runs[side.title].append(measure(ground, side, ground.load(writers)))
            except ChildFailed as error:
                absent[side.title] = f"with {writers} writers {error}"
                del runs[side.title]
    return runs


def beside(runs: Runs, writers: int) -> Iterator[BesideRow]:
    ours = runs.get(SIDES["ours"].title)
    for title, theirs in runs.items():
        if ours and theirs is not ours:
            yield BesideRow(
                title=title,
                writers=writers,
                rate=compare([*map(rate, ours)], [*map(rate, theirs)]).ratio,
                p50=compare(*([seen.latency.p50_s for seen in side] for side in (theirs, ours))).ratio,
                p99=compare(*([seen.latency.p99_s for seen in side] for side in (theirs, ours))).ratio,
            )
