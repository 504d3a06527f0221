"""Random histories of a table in memory or on a disk, played through the public API by processes that may die."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import trio
import trio.testing
from hypothesis import strategies as st

from tallymark.backends import Backend
from tallymark.backends.local import LocalBackend
from tallymark.engine.errors import ConflictError, RolledBack
from tallymark.engine.jobs import lost_fills
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.settings import ViewSettings
from tallymark.engine.table import Table
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.timeline.entry import encode_entry
from tallymark.engine.timeline.log import LOG_FOLDER, read_entry
from tests.backends.local_peek import LocalPeek
from tests.engine.jobs.filling import SIZING, write_planned
from tests.engine.jobs.scene import Store, begin, table
from tests.support.dying import DyingBackend, ProcessDied

HOUR_S = 3600.0


class InMemory(Store):
    """On virtual time."""

    def pass_s(self, seconds: float) -> None:
        """The store's clock goes on; that of the loop does not."""
        self.clock.now += seconds

    def run(self, *main: Any) -> None:
        """An async function and its arguments, with trio."""
        trio.run(*main, clock=trio.testing.MockClock(autojump_threshold=0))


class OnDisk:
    """On the time of this machine: instead of its clock, files grow older."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.backend = LocalBackend(root)

    @property
    def objects(self) -> dict[str, bytes]:
        return LocalPeek(self._root).objects()

    def pass_s(self, seconds: float) -> None:
        for folder, _, names in os.walk(self._root):
            for path in (Path(folder) / name for name in names):
                modified = path.stat().st_mtime - seconds
                os.utime(path, (modified, modified))

    def run(self, *main: Any) -> None:
        trio.run(*main)


Place = InMemory | OnDisk
RETAIN_HOURS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Appends fill the small files of their months; overwrites replace all, or only their months."""

    mode: str = "append"
    is_dynamic: bool = True
    months: tuple[int, ...] = (1,)
    is_committed: bool = True
    """Else it is rolled back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rivals:
    """The second begins when the first has written, and commits before it."""

    first: Write
    second: Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Clean:
    retain_hours: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RollBack:
    """What dead writers have left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    hours: float
    """Of the store's clock, all of them longer than a lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A zombie's entry, for an instant that was decided: it counts for nothing."""

    nth: int


Act = Write | Rivals | Clean | RollBack | Wait | Again


@dataclass(frozen=True, slots=True)
class Step:
    act: Act
    dies_at: int | None
    """The call to storage, counted from 1, at which its process dies, if it comes that far."""
    is_followed: bool
    """Whoever keeps a view up to date reads the log after it."""


writes = st.builds(
    Write,
    mode=st.sampled_from(["append", "append", "overwrite"]),
    is_dynamic=st.booleans(),
    months=st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=3, unique=True).map(tuple),
    is_committed=st.sampled_from([True, True, True, False]),
)
acts = st.one_of(
    writes,
    writes,
    st.builds(Rivals, first=writes, second=writes),
    st.builds(Clean, retain_hours=st.sampled_from([None, 0.0, 0.0, 0.0, 1.0])),
    st.builds(RollBack),
    st.builds(Wait, hours=st.sampled_from([0.1, 1.0, 3.0])),
    st.builds(Again, nth=st.integers(0, 30)),
)
deaths = st.one_of(st.none(), st.none(), st.integers(1, 90))
steps = st.builds(Step, acts, deaths, st.sampled_from([True, True, False]))
histories = st.lists(steps, min_size=2, max_size=9)


class Player:
    """Plays steps on a table, which is made by the first write."""

    def __init__(self, place: Place, readers: str, views: ViewSettings) -> None:
        self._place = place
        self._views = views
        self._made = {"readers": "table", "retain_hours": RETAIN_HOURS} if readers == "table" else {}
        self._keeps = readers == "table"
        self._flights = count(1)

    async def found(self) -> None:
        """A file in each month."""
        await self._write(self._place.backend, Write(months=(1, 2, 3)))

    async def play(self, step: Step) -> bool:
        """Returns whether the process that did it has died."""
        if isinstance(step.act, Wait):
            self._place.pass_s(step.act.hours * HOUR_S)
            return False
        self._place.pass_s(1)
        return await died_at(step.dies_at, self._place.backend, lambda backend: self._act(backend, step.act))

    async def _act(self, backend: Backend, act: Act) -> None:
        match act:
            case Write():
                await self._write(backend, act)
            case Rivals():
                async with self._written(backend, act.first) as (job, report):
                    await _drop_claims(backend)
                    await self._write(backend, act.second)
                    await _commit(job, report, act.first)
            case Clean():
                await self._table(backend).clean(retain_hours=act.retain_hours if self._keeps else None)
            case RollBack():
                await self._table(backend).rollback()
            case Again():
                await _win_in_vain(backend, act.nth)

    async def _write(self, backend: Backend, write: Write) -> None:
        async with self._written(backend, write) as (job, report):
            await _commit(job, report, write)

    @asynccontextmanager
    async def _written(self, backend: Backend, write: Write) -> AsyncIterator[tuple[WriteJob, TaskReport]]:
        months = {month: [next(self._flights)] for month in write.months}
        how = "dynamic" if write.is_dynamic else "static"
        with suppress(ConflictError, RolledBack):
            where = self._table(backend)
            async with begin(where, write.mode, partition_overwrite=how, sizing=SIZING, **self._made) as job:
                report = await write_planned(job, backend, months)
                files = [replace(file, plain_bytes=next(self._flights)) for file in report.files]
                yield job, replace(report, files=tuple(files))

    def _table(self, backend: Backend) -> Table:
        return table(backend, views=self._views)


async def _commit(job: WriteJob, report: TaskReport, write: Write) -> None:
    if write.is_committed:
        await job.commit([report])


async def _drop_claims(backend: Backend) -> None:
    """Whoever comes next fills what others are filling."""
    claims = [entry.path async for entry in backend.list(".hoodie/.temp") if entry.path.endswith("/FILLS")]
    await backend.delete(claims)


async def _win_in_vain(backend: Backend, nth: int) -> None:
    """Put an entry that was there before once more at the end of the log, as a request that took very long would."""
    numbers = [int(entry.path.rpartition("/")[2]) async for entry in backend.list(LOG_FOLDER)]
    head = numbers[-1]
    entry = await read_entry(backend, numbers[nth % len(numbers)])
    late = replace(entry, nonce=f"late{head}", added=entry.removed, removed=entry.added)
    await backend.put_new(f"{LOG_FOLDER}/{head + 1:020d}", encode_entry(late))


async def died_at(at: int | None, backend: Backend, act: Callable[[Backend], Awaitable[None]]) -> bool:
    """Do it in a process of its own that dies at its ``at``-th call to storage, if it makes as many."""
    dying = DyingBackend(backend, at=at)
    try:
        with trio.fail_after(1e6):
            await act(dying)
    except* ProcessDied:
        pass
    return dying.is_dead


@contextmanager
def without_threads() -> Iterator[None]:
    """Virtual time does not wait for any."""

    async def at_once(code, *arguments):
        return code(*arguments)

    with mock.patch.object(lost_fills, "_in_thread", at_once):
        yield
