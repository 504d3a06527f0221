"""Histories of writes that fill small files, lose them and overwrite them, played beside a dict of rows.

In each round some writes begin one after the other, their tasks write, and then they commit in an order of its own: so
those of a round are rivals. A row is a flight, which no two writes share, and lies in a month.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

import anyio
import pyarrow as pa
import trio
from hypothesis import strategies as st

from tallymark.backends import Backend
from tallymark.backends.local import LocalBackend
from tallymark.engine.errors import ConflictError
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.settings import SizingSettings, TaskSettings
from tallymark.engine.sizing import IncomingRows, PlannedFile, WorkloadProfile
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.task_writer import write_task
from tests.backends.local_peek import LocalPeek
from tests.engine.jobs.scene import FLIGHTS, begin

MONTHS = (1, 2, 3)

SIZINGS = (
    SizingSettings(rewrite_budget=1000),
    SizingSettings(rewrite_budget=1000, policy="hudi"),
    SizingSettings(max_file_bytes=1500, small_file_bytes=1500, rewrite_budget=1000),
    None,
)
"""Without a budget that binds: every file is small, or those are that hold a few row groups; or sizing is off."""

Block = AbstractAsyncContextManager[WriteJob]

Flown = Sequence[tuple[int, int]]
"""Flights, and their months."""


class Place(Protocol):
    @property
    def backend(self) -> Backend: ...
    @property
    def objects(self) -> Mapping[str, bytes]: ...


class Disk:
    """A local directory, and a look at it around the library."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.backend = LocalBackend(path)

    @property
    def objects(self) -> dict[str, bytes]:
        return LocalPeek(self.path).objects()


@dataclass(frozen=True)
class Task:
    months: tuple[int, ...]
    """One row in each."""
    losers: tuple[Literal["raises", "unreported"], ...]
    """Attempts before the one that counts: they fail in the middle, or finish and nobody hears of it."""


@dataclass(frozen=True)
class Call:
    mode: Literal["append", "overwrite"]
    is_dynamic: bool
    tasks: tuple[Task, ...]
    sizing: SizingSettings | None
    heeds_claims: bool
    """It leaves alone what others are filling."""
    open_file_count: int
    """1: a file is finished when rows of another month come."""
    commits: bool
    """Else it is rolled back."""

    def replaces(self, month: int) -> bool:
        if self.mode == "append":
            return False
        return not self.is_dynamic or any(month in task.months for task in self.tasks)


tasks = st.builds(
    Task,
    months=st.lists(st.sampled_from(MONTHS), min_size=1, max_size=4).map(tuple),
    losers=st.lists(st.sampled_from(["raises", "unreported"]), max_size=1).map(tuple),
)

calls = st.builds(
    Call,
    mode=st.sampled_from(["append", "append", "append", "overwrite"]),
    is_dynamic=st.booleans(),
    tasks=st.lists(tasks, min_size=1, max_size=2).map(tuple),
    sizing=st.sampled_from([SIZINGS[0], *SIZINGS]),
    heeds_claims=st.sampled_from([False, False, True]),
    open_file_count=st.sampled_from([1, 500]),
    commits=st.sampled_from([True, True, True, False]),
)

histories = st.lists(
    st.lists(st.tuples(calls, st.integers(0, 9)), min_size=1, max_size=3), min_size=1, max_size=4
)  # fmt: skip
"""Rounds of calls; beside each a number that tells whose turn it is to commit."""


def append(*months: int) -> Call:
    """One that does not heed what others fill."""
    return Call(
        mode="append",
        is_dynamic=False,
        tasks=(Task(months, ()),),
        sizing=SIZINGS[0],
        heeds_claims=False,
        open_file_count=500,
        commits=True,
    )


FULL = append(*MONTHS)
"""Makes a small file in each month."""


Rounds = Sequence[Sequence[tuple[Call, int]]]


@dataclass
class Model:
    """The rows of the table, flight to month, at every position that a commit has made."""

    states: list[dict[int, int]] = field(default_factory=lambda: [{}])
    conflicting: list[set[int]] = field(default_factory=list)
    """The months in which a commit has replaced something, or would have."""

    def commit(self, call: Call, base: int, rows: Flown) -> None:
        now = self.states[-1]
        gone = {flight for flight, month in self.states[base].items() if call.replaces(month)}
        self.states.append({flight: month for flight, month in now.items() if flight not in gone} | dict(rows))

    def may_conflict(self, call: Call, base: int) -> bool:
        """Something in what it overwrites was replaced since."""
        months = set().union(*self.conflicting[base:])
        return call.mode == "overwrite" and any(call.replaces(month) for month in months)


class _InputFailed(Exception):
    pass


class Running:
    """One write, in a task of its own: begun and written to; then it waits for its turn to commit."""

    def __init__(self, block: Block, write: Callable[[WriteJob], Awaitable[list[TaskReport]]]) -> None:
        self._block = block
        self._write = write
        self._turn = trio.Event()
        self._ended = trio.Event()
        self._commits = True
        self._result: WriteResult | None = None

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        with suppress(ConflictError):
            async with self._block as job:
                reports = await self._write(job)
                task_status.started()
                await self._turn.wait()
                if self._commits:
                    self._result = await job.commit(reports)
        self._ended.set()

    async def end(self, *, commits: bool = True) -> WriteResult | None:
        """Its result; None if it was refused, or is not to commit."""
        self._commits = commits
        self._turn.set()
        await self._ended.wait()
        return self._result


def _block(backend: Backend, call: Call) -> Block:
    how = "dynamic" if call.is_dynamic else "static"
    settings = TaskSettings(row_group_bytes=16, open_file_count=call.open_file_count)
    block: Block = begin(backend, call.mode, partition_overwrite=how, tasks=settings, sizing=call.sizing)
    return block


async def _write(backend: Backend, call: Call, rows: Sequence[Flown], job: WriteJob) -> list[TaskReport]:
    """``rows`` are of each task."""
    if not call.heeds_claims:
        claims = [entry.path async for entry in backend.list(".hoodie/.temp") if entry.path.endswith("FILLS")]
        await backend.delete(claims)
    incoming = Counter(f"month={month}" for of_task in rows for _, month in of_task)
    profile = WorkloadProfile(incoming=tuple(IncomingRows(path, count) for path, count in sorted(incoming.items())))
    planned = _shared_out((await job.size(profile)).files, rows)
    reports = []
    for number, (task, of_task, files) in enumerate(zip(call.tasks, rows, planned, strict=True)):
        run = partial(write_task, job.ticket, task=number, planned=files, backend=backend)
        for attempt, loser in enumerate(task.losers):
            with suppress(_InputFailed):
                batches = _batches(of_task, raises=loser == "raises")
                await anyio.to_thread.run_sync(partial(run, batches, attempt=attempt))
        winner = partial(run, _batches(of_task, raises=False), attempt=len(task.losers))
        reports.append(await anyio.to_thread.run_sync(winner))
    return reports


def _batches(rows: Flown, *, raises: bool) -> Iterator[pa.RecordBatch]:
    """Two rows each: of one month or of two."""
    for start in range(0, len(rows), 2):
        if raises and start + 2 >= len(rows):
            raise _InputFailed
        some = rows[start : start + 2]
        values = {"flight": [flight for flight, _ in some], "month": [month for _, month in some]}
        yield pa.RecordBatch.from_pydict(values, schema=FLIGHTS)


def _shared_out(files: Sequence[PlannedFile], tasks: Sequence[Flown]) -> list[list[PlannedFile]]:
    """Each planned file to the first task with rows for it, and none in its month yet."""
    found: list[dict[str, PlannedFile]] = [{} for _ in tasks]
    for file in files:
        for rows, mine in zip(tasks, found, strict=True):
            if file.partition not in mine and any(file.partition == f"month={month}" for _, month in rows):
                mine[file.partition] = file
                break
    return [list(mine.values()) for mine in found]


async def play(place: Place, rounds: Rounds, check: Callable[[Model], None]) -> Counter[str]:
    """``check`` looks at the table after each round, when nobody writes. Returns how often what has happened."""
    model, flight, told = Model(), 0, Counter[str]()
    for round_ in rounds:
        base = len(model.states) - 1
        async with trio.open_nursery() as nursery:
            begun = []
            for call, turn in round_:
                rows = [[((flight := flight + 1), month) for month in task.months] for task in call.tasks]
                write = partial(_write, place.backend, call, rows)
                job = Running(_block(place.backend, call), write)
                await nursery.start(job.run)
                begun.append((turn, call, rows, job))
            for _, call, rows, job in sorted(begun, key=lambda one: one[0]):
                result = await job.end(commits=call.commits)
                told.update(_told(call, result))
                _judge(model, call, base, [row for of_task in rows for row in of_task], result)
        check(model)
    return told


def _judge(model: Model, call: Call, base: int, rows: Flown, result: WriteResult | None) -> None:
    if result is None:
        assert not call.commits or model.may_conflict(call, base), f"{call} was refused, and nothing excludes it"
        return
    model.commit(call, base, rows)
    has_replaced = {month for month in MONTHS if call.replaces(month)}
    if call.mode == "append" and result.removed_files:
        has_replaced = {month for _, month in rows}
    model.conflicting.append(has_replaced)


def _told(call: Call, result: WriteResult | None) -> Iterator[str]:
    if result is None:
        yield "is refused" if call.commits else "is left"
    elif call.mode == "overwrite":
        yield "overwrites"
    else:
        yield "fills" if result.removed_files else "appends"
    if result is not None and result.sizing is not None and result.sizing.lost_fills:
        yield "loses fills"
