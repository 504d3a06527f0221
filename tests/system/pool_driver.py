"""A driver that is not Spark's: it forks a pool of worker processes, writes with them, and commits on an event loop."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from multiprocessing.connection import Connection
from typing import Literal

import anyio
import anyio.to_thread

from tallymark.backends import StorageOptions, open_backend
from tallymark.engine.clock import Clock, SystemClock
from tallymark.engine.errors import TallymarkError
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.settings import LeaseSettings, SizingSettings, TaskSettings
from tallymark.engine.sizing import IncomingRows, PlannedFile, SizingPlan, WorkloadProfile
from tallymark.engine.table import open_table
from tallymark.engine.tasks.report import TaskReport
from tests.system.pool_worker import SCHEMA, TaskPlan, Worker
from tests.system.rigged import Fault, RiggedBackend

WriteMode = Literal["append", "whole overwrite", "dynamic overwrite"]
End = Literal["committed", "left", "cancelled"]
Loop = Literal["trio", "asyncio"]

EAGER = TaskSettings(row_group_bytes=1, compression="none", open_file_count=1, fallback=False)
"""Rows are encoded as they come, and a file is published when the next part begins. Without the driver there is no
marker."""

SHORT_WAIT_S = 3.0
"""For a marker, where the driver is killed or stopped before the task asks for it."""


SIZING = SizingSettings(rewrite_budget=1000)
"""Every file of these tests is small, and worth filling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """One write job: what its tasks do, how it ends, and what goes wrong."""

    table: str
    """A URL."""
    options: StorageOptions = field(default_factory=StorageOptions)
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables for the driver and its pool, whose common ancestor may be older than the test's own."""
    mode: WriteMode = "append"
    fills: bool = False
    """It plans its files, and fills small ones."""
    txn: str | None = None
    tasks: tuple[TaskPlan, ...]
    end: End = "committed"
    fault: Fault | None = None
    lease: LeaseSettings = field(default_factory=LeaseSettings)
    marker_wait_s: float = EAGER.marker_wait_s
    loop: Loop = "trio"
    now: datetime | None = None
    """A clock that stands still at this moment, in place of the machine's."""
    waits: Literal["never", "to begin", "to end"] = "never"
    """Before it begins, or once its tasks have reported, it says Waiting until it is told something."""

    @property
    def rows(self) -> list[tuple[int, str, str]]:
        """Those of the attempts that it commits."""
        return [row for task in self.tasks if task.is_winner for row in task.rows]


@dataclass(frozen=True, slots=True)
class Waiting:
    pass


@dataclass(frozen=True, slots=True)
class JobBegun:
    instant: str


@dataclass(frozen=True, slots=True)
class JobEnded:
    outcome: str
    """What ``WritePlan.end`` says, or the class of the error that left the block."""
    beats: tuple[float, ...]
    """When each beat was begun, on the machine's monotonic clock."""


class FrozenClock:
    def __init__(self, moment: datetime) -> None:
        self._moment = moment

    def now(self) -> datetime:
        return self._moment


def drive(line: Connection, plan: WritePlan) -> None:
    """The program."""
    os.environ.update(plan.environment)
    workers: list[Worker] = []
    for task in plan.tasks:
        workers.append(Worker(task, line, workers))
    anyio.run(partial(_drive, line, plan, workers), backend=plan.loop)


async def _drive(line: Connection, plan: WritePlan, workers: list[Worker]) -> None:
    backend = RiggedBackend(open_backend(plan.table, options=plan.options), plan.fault)
    if plan.waits == "to begin":
        await _wait(line)
    outcome: str = plan.end
    try:
        await _write(line, plan, workers, backend)
    except TallymarkError as error:
        outcome = type(error).__name__
    line.send(JobEnded(outcome, tuple(backend.beats)))


async def _write(line: Connection, plan: WritePlan, workers: list[Worker], backend: RiggedBackend) -> None:
    clock: Clock = SystemClock() if plan.now is None else FrozenClock(plan.now)
    table = open_table(plan.table, options=plan.options, backend=backend, lease=plan.lease, clock=clock)
    with anyio.CancelScope() as scope:
        async with table.write(
            schema=SCHEMA,
            mode="append" if plan.mode == "append" else "overwrite",
            partition_overwrite="dynamic" if plan.mode == "dynamic overwrite" else "static",
            partition_by=["part"],
            txn=plan.txn,
            tasks=replace(EAGER, marker_wait_s=plan.marker_wait_s),
            sizing=SIZING if plan.fills else None,
        ) as job:
            line.send(JobBegun(job.instant))
            reports = await _reports(job, workers)
            if plan.waits == "to end":
                await _wait(line)
            if plan.end == "committed":
                await job.commit(reports)
            elif plan.end == "cancelled":
                scope.cancel()
                await anyio.sleep_forever()


async def _reports(job: WriteJob, workers: list[Worker]) -> list[TaskReport]:
    plans = [worker.plan for worker in workers]
    planned = planned_files(await job.size(profile_of(plans)), plans)
    for worker, files in zip(workers, planned, strict=True):
        worker.begin(job.ticket, files)
    reports = [await _in_thread(worker.report) for worker in workers if worker.plan.is_awaited]
    winners = {(worker.plan.task, worker.plan.attempt) for worker in workers if worker.plan.is_winner}
    return [report for report in reports if (report.task, report.attempt) in winners]


def profile_of(tasks: Iterable[TaskPlan]) -> WorkloadProfile:
    """Of the attempts that are committed."""
    rows = Counter(part for task in tasks if task.is_winner for _, part, _ in task.rows)
    return WorkloadProfile(incoming=tuple(IncomingRows(f"part={part}", count) for part, count in sorted(rows.items())))


def planned_files(plan: SizingPlan, tasks: Sequence[TaskPlan]) -> list[list[PlannedFile]]:
    """Those of each attempt: each planned file goes to the first task with rows for it, all attempts alike."""
    found: dict[int, dict[str, PlannedFile]] = {task.task: {} for task in tasks}
    for file in plan.files:
        for task in tasks:
            has_rows = file.partition.removeprefix("part=") in task.parts
            if has_rows and file.partition not in found[task.task]:
                found[task.task][file.partition] = file
                break
    return [list(found[task.task].values()) for task in tasks]


async def _wait(line: Connection) -> None:
    line.send(Waiting())
    await _in_thread(line.recv)


_in_thread = partial(anyio.to_thread.run_sync, abandon_on_cancel=True)
