"""Part ``one-table``: many callers of one ``Table`` of one process, on one event loop."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tallymark.bench.child import ChildFailed
from tallymark.bench.commits.measure import CommitRow, Ground, measure
from tallymark.bench.commits.sides import ROWS, SIDES, append, batches
from tallymark.bench.load import Seen, Target
from tallymark.bench.results import Table
from tallymark.bench.stores import options_of
from tallymark.engine.table import Table as DataTable
from tallymark.engine.table import open_table


@dataclass(slots=True)
class Shared:
    """What all callers have in common."""

    table: DataTable
    counts: dict[str, float] = field(default_factory=lambda: {"commits": 0, "refused": 0, "committed": 0})


class TableCaller:
    style = "task"

    def __init__(self, shared: Shared, _target: Target, series: int) -> None:
        self._shared = shared
        self._batches = batches(series)

    @staticmethod
    @asynccontextmanager
    async def shared(target: Target) -> AsyncIterator[Shared]:
        """Yield the table after a first commit."""
        shared = Shared(open_table(target["table"], options=options_of(target)))
        await TableCaller(shared, target, -1).ask()
        yield shared

    async def ask(self) -> None:
        rows = next(self._batches)
        while not await append(self._shared.table, rows):
            self._shared.counts["refused"] += 1
        self._shared.counts["commits"] += 1
        self._shared.counts["committed"] += ROWS

    def statistics(self) -> dict[str, float]:
        return self._shared.counts


def tables(ground: Ground) -> Iterator[Table]:
    ours, callers = SIDES["ours"], ground.effort.callers
    runs: list[Seen] = []
    absent: dict[str, str] = {}
    try:
        for number in range(ground.effort.rounds):
            ground.progress(f"commits: {callers} callers of one table, {ground.place.where}, round {number + 1}")
            runs.append(measure(ground, ours, ground.load(callers, processes=1), callers=TableCaller))
    except ChildFailed as error:
        absent[f"{ours.title} in round {len(runs) + 1}"] = str(error)
    rows = [CommitRow.of(ours.title, callers, runs)] if runs else []
    yield Table(title=f"callers of one table, {ground.place.where}", rows=rows, absent=absent)
