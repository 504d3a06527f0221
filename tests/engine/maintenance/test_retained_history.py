"""Random histories of a table: what ``as_of`` returns is what a model remembers, or is refused because it is deleted.

No file is deleted before its hours are over.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime

import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.jobs.result import WriteResult
from tests.engine.jobs.scene import Store, TickingClock, begin, table, write_rows
from tests.support.examples import examples

HOUR_S = 3600.0
RETAIN_HOURS = 3.0

months = st.lists(st.integers(1, 3), min_size=1, max_size=2, unique=True)
steps = st.one_of(
    st.tuples(st.just("append"), months),
    st.tuples(st.just("overwrite"), months),
    st.tuples(st.just("overwrite all"), months),
    st.tuples(st.just("give up"), months),
    st.tuples(st.just("wait"), st.sampled_from([0.5, 1.0, 3.0])),
    st.tuples(st.just("clean"), st.sampled_from([None, 0.0, 1.0])),
)


@dataclass
class Model:
    """What the table contained at each position of the log, and when that was decided."""

    held: list[frozenset[str]] = field(default_factory=lambda: [frozenset()])
    decided: list[tuple[float, str, int]] = field(default_factory=list)
    """Times of commits, their instants and their positions."""
    replaced: list[tuple[float, int]] = field(default_factory=list)
    """Times of those that replaced files, and their positions."""

    def commit(self, added: set[str], removed: set[str], now: float, result: WriteResult) -> None:
        self.follow(result.position - 1)
        self.held.append((self.held[-1] - removed) | added)
        self.decided.append((now, result.instant, result.position))
        if removed:
            self.replaced.append((now, result.position))

    def follow(self, head: int) -> None:
        """Entries that change nothing: rollbacks and cleans."""
        self.held += [self.held[-1]] * (head + 1 - len(self.held))

    def due(self, now: float, hours: float) -> int:
        """The last position whose replaced files have been kept for so long."""
        return max((position for time, position in self.replaced if time <= now - hours * HOUR_S), default=0)


class History:
    """Plays steps on a real table and on the model."""

    def __init__(self, readers: str) -> None:
        self.store = Store(has_staging=True)
        self.clock = TickingClock()
        self.readers = readers
        self.model = Model()

    @property
    def horizon(self) -> int:
        return max((entry["horizon"] for entry in self.store.log_entries), default=0)

    async def play(self, kind: str, what) -> None:
        before = self.horizon
        if kind == "wait":
            self._pass_s(what * HOUR_S)
        elif kind == "clean":
            hours = what if self.readers == "table" else None
            await table(self.store.backend).clean(retain_hours=hours)
            due = self.model.due(self.store.clock.now, RETAIN_HOURS if hours is None else hours)
            assert self.horizon == (max(before, due) if self.readers == "table" else 0)
        else:
            await self._write(kind, what)
            assert self.horizon <= max(before, self.model.due(self.store.clock.now, RETAIN_HOURS))
        self.model.follow(len(self.store.log_entries))
        self._pass_s(1)

    def _pass_s(self, seconds: float) -> None:
        self.store.clock.now += seconds
        self.clock.pass_s(seconds)

    async def _write(self, kind: str, what: list[int]) -> None:
        made = {"readers": "table", "retain_hours": RETAIN_HOURS} if self.readers == "table" else {}
        mode = "overwrite" if kind.startswith("overwrite") else "append"
        how = "dynamic" if kind == "overwrite" else "static"
        where = table(self.store.backend, clock=self.clock)
        async with begin(where, mode, partition_overwrite=how, **made) as job:
            report = await write_rows(job, self.store.backend, dict.fromkeys(what, 1))
            if kind == "give up":
                return
            result = await job.commit([report])
        added, before = {file.path for file in report.files}, self.model.held[-1]
        scope = tuple(f"month={month}/" for month in what) if how == "dynamic" else ""
        removed = {path for path in before if path.startswith(scope)} if mode == "overwrite" else set()
        self.model.commit(added, removed, self.store.clock.now, result)

    async def check(self) -> None:
        self.store.check_at_rest()
        there = self.store.data_files
        for position, held in enumerate(self.model.held):
            assert await self._as_of(position) == (held if held <= there else None)
        for time, instant, position in self.model.decided:
            assert await self._as_of(datetime.fromtimestamp(time + 0.5, UTC)) == await self._as_of(position)
            assert await self._as_of(instant) == await self._as_of(position)
        if self.readers == "table":
            assert all(held <= there for held in self.model.held[self.horizon :])

    async def _as_of(self, as_of) -> frozenset[str] | None:
        """None where it is refused for what is gone."""
        try:
            snapshot = await table(self.store.backend).snapshot(as_of=as_of)
        except InvalidRequest as error:
            if "no longer all retained" not in str(error):
                raise
            return None
        return frozenset(file.path for file in snapshot.files)


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(["table", "table", "directory"]), st.lists(steps, min_size=1, max_size=9))
def test_any_position_or_time_is_as_it_was_or_refused_because_files_of_it_are_gone(readers, played):
    async def main() -> None:
        history = History(readers)
        await history.play("append", [1])
        for kind, what in played:
            await history.play(kind, what)
        await history.check()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
