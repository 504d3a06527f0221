"""The processes of a chaos run: a writer, job after job, and a reader under leases. Each keeps a durable journal."""

import faulthandler
import json
import os
import signal
import socket
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from multiprocessing.connection import Connection
from pathlib import Path

import anyio
import anyio.to_thread
import pyarrow as pa
import pyarrow.parquet as pq

import tallymark
from tallymark.backends import BackendError, NotFound, open_backend
from tallymark.engine.settings import MarkerSettings, ViewSettings
from tests.system.chaos.plans import COMMIT, JobPlan, Life
from tests.system.pool_driver import EAGER, SIZING, planned_files, profile_of
from tests.system.pool_worker import SCHEMA, Row, TaskPlan, Worker

TASK = replace(EAGER, marker_wait_s=10.0, service_wait_s=3.0, service_pause_s=1.0, publish_pause_s=0.1)
COMMIT_CALLS = 5
ATTEMPTS = 3
READING_S = 2.0
"""How long a reader waits before it reads what it has leased: cleans are to come in between."""

DEFECTS = (tallymark.CorruptObject, tallymark.InvalidRequest, tallymark.TableReplaced, tallymark.NotPermitted)
"""Errors that nothing in a chaos run excuses."""


class Journal:
    """What a process was told, one JSON object a line; durable when ``note`` returns."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, **facts: object) -> None:
        os.write(self._file, json.dumps(facts).encode() + b"\n")
        os.fsync(self._file)


@dataclass(frozen=True, slots=True)
class SkewedClock:
    skew_s: float

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.skew_s)


def live(_: Connection, life: Life) -> None:
    """The program of either. Task processes are forked first, while there is no thread and no client of a store."""
    folder = Path(life.folder)
    journal = Journal(folder / f"{life.name}.journal")
    stacks = os.open(folder / f"{life.name}.stacks", os.O_WRONLY | os.O_CREAT)
    faulthandler.register(signal.SIGUSR1, file=stacks)
    if life.host is not None:
        name = life.host
        socket.gethostname = lambda: name
    line = Connection(os.open(os.devnull, os.O_WRONLY), readable=False)
    workers: dict[int, list[Worker]] = {}
    for index, plan in enumerate(life.jobs):
        forked: list[Worker] = []
        for task in plan.tasks if plan.in_processes else ():
            forked.append(Worker(task, line, [each for some in workers.values() for each in some] + forked))
        workers[index] = forked
    try:
        anyio.run(
            partial(_write, life, journal, workers) if life.jobs else partial(_read, life, journal), backend=life.loop
        )
    except BaseException:
        journal.note(defect=traceback.format_exc())


async def _write(life: Life, journal: Journal, workers: dict[int, list[Worker]]) -> None:
    for index, plan in enumerate(life.jobs):
        if Path(life.folder, "stop").exists():
            return
        table = tallymark.open_table(
            life.tables[plan.table],
            options=life.options,
            commit=COMMIT,
            lease=life.lease,
            views=ViewSettings(checkpoint_entries=16),
            clock=SkewedClock(plan.skew_s),
        )
        await WriterOfJob(table, plan, journal, workers[index]).run()


@dataclass(slots=True)
class WriterOfJob:
    table: tallymark.Table
    plan: JobPlan
    journal: Journal
    workers: Sequence[Worker]
    has_committed: bool = False
    is_unknown: bool = False
    """The last call of commit did not tell."""

    async def run(self) -> None:
        try:
            await self._job()
            await self._care()
        except tallymark.TallymarkError as error:
            self._note_error(error)
        if not self.has_committed:
            self._note(told="unknown" if self.is_unknown else "not committed")

    async def _job(self) -> None:
        plan = self.plan
        async with self.table.write(
            schema=SCHEMA,
            mode="append" if plan.mode == "append" else "overwrite",
            markers=MarkerSettings(kind="direct" if plan.is_direct else "batched"),
            tasks=replace(TASK, fallback=plan.fallback),
            sizing=SIZING if plan.fills else None,
            **plan.request,
        ) as job:
            self._note(began=job.instant)
            reports = [] if job.committed else await self._reports(job)
            if not plan.is_left:
                result = await self._committed(job, reports)
                self.has_committed = True
                self._note(told="committed", instant=result.instant, position=result.position, is_rerun=result.is_rerun)

    async def _committed(
        self, job: tallymark.WriteJob, reports: Sequence[tallymark.TaskReport]
    ) -> tallymark.WriteResult:
        for _ in range(COMMIT_CALLS - 1):
            try:
                return await job.commit(reports)
            except (tallymark.CommitUnknown, BackendError) as error:
                self._note_error(error)
                self.is_unknown |= isinstance(error, tallymark.CommitUnknown)
        try:
            return await job.commit(reports)
        except tallymark.TallymarkError as error:
            self.is_unknown = isinstance(error, tallymark.CommitUnknown)
            raise

    async def _reports(self, job: tallymark.WriteJob) -> list[tallymark.TaskReport]:
        tasks = self.plan.tasks
        planned = planned_files(await job.size(profile_of(tasks)), tasks)
        reports: dict[int, tallymark.TaskReport] = {}
        failures: list[tallymark.TallymarkError] = []

        async def run(number: int, first_attempt: int, worker: Worker | None) -> None:
            """One attempt in the process, where there is one, and others in threads."""
            for attempt in range(first_attempt, first_attempt + ATTEMPTS):
                attempted = replace(tasks[number], attempt=attempt)
                try:
                    if worker is not None and attempt == first_attempt:
                        worker.begin(job.ticket, planned[number])
                        report = await anyio.to_thread.run_sync(worker.report, abandon_on_cancel=True)
                    else:
                        report = await anyio.to_thread.run_sync(_write_task, job.ticket, attempted, planned[number])
                except (EOFError, OSError):
                    continue  # the process was killed
                except tallymark.TallymarkError as error:
                    self._note_error(error)
                    failures.append(error)
                    continue
                reports.setdefault(number, report)
                return

        async with anyio.create_task_group() as group:
            for number in range(len(tasks)):
                group.start_soon(run, number, 0, self.workers[number] if self.workers else None)
            if self.plan.has_twins:
                group.start_soon(run, 0, ATTEMPTS, None)
        if len(reports) < len(tasks):
            raise failures[-1] if failures else tallymark.JobFailed("every attempt of a task was killed")
        return [*reports.values()]

    async def _care(self) -> None:
        match self.plan.care:
            case "clean":
                await self.table.clean()
            case "rollback":
                await self.table.rollback()
            case "checkpoint":
                await self.table.checkpoint()

    def _note(self, **facts: object) -> None:
        self.journal.note(plan=self.plan.number, **facts)

    def _note_error(self, error: tallymark.TallymarkError) -> None:
        kind = "defect" if isinstance(error, DEFECTS) else "error"
        if self.plan.txn and isinstance(error, tallymark.InvalidRequest) and "archived" in str(error):
            kind = "refused"
        self._note(**{kind: f"{type(error).__name__}: {error}"})


def _write_task(
    ticket: tallymark.WriteTicket, task: TaskPlan, planned: Sequence[tallymark.PlannedFile]
) -> tallymark.TaskReport:
    rows = [dict(zip(SCHEMA.names, row, strict=True)) for row in task.rows]
    batches = [pa.RecordBatch.from_pylist(rows, schema=SCHEMA)]
    return tallymark.write_task(ticket, batches, task=task.task, attempt=task.attempt, planned=planned)


async def _read(life: Life, journal: Journal) -> None:
    """Lease, wait, and read all files of the snapshot, again and again; note what was seen."""
    while not Path(life.folder, "stop").exists():
        for name, url in life.tables.items():
            table = tallymark.open_table(url, options=life.options, commit=COMMIT, lease=life.lease)
            try:
                await _read_snapshot(table, name, life, journal)
            except tallymark.UnsupportedTable:
                await anyio.sleep(0.2)  # nobody has made it yet
            except tallymark.TallymarkError as error:
                kind = "defect" if isinstance(error, DEFECTS) else "error"
                journal.note(table=name, **{kind: f"{type(error).__name__}: {error}"})


async def _read_snapshot(table: tallymark.Table, name: str, life: Life, journal: Journal) -> None:
    backend, started = open_backend(table.url, options=life.options), time.monotonic()
    async with table.reading() as snapshot:
        await anyio.sleep(min(READING_S, life.lease.expiry_s / 4))
        rows: list[Row] = []
        for file in snapshot.files:
            try:
                rows += rows_of_file(await backend.get(file.path))
            except NotFound:
                if time.monotonic() - started < life.lease.expiry_s / 2:
                    journal.note(table=name, defect=f"{file.path} of leased position {snapshot.position} is missing")
                return
    journal.note(table=name, read=snapshot.position, rows=len(rows), digest=digest_of(rows))


def rows_of_file(data: bytes) -> list[Row]:
    columns = pq.read_table(pa.BufferReader(data), partitioning=None).select(SCHEMA.names).columns
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def digest_of(rows: Sequence[Row]) -> str:
    return sha256(repr(sorted(rows)).encode()).hexdigest()
