"""Jobs that fill small files, for the tests of this room."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pyarrow as pa

from tallymark.backends import Backend
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.settings import MarkerSettings, SizingSettings
from tallymark.engine.sizing import IncomingRows, PlannedFile, WorkloadProfile
from tallymark.engine.table import Table
from tallymark.engine.tasks.report import Fill, TaskReport
from tallymark.engine.tasks.task_writer import write_task
from tests.engine.jobs.scene import FLIGHTS, mark, name_of, publish, table
from tests.support.parquet import read_bytes

SIZING = SizingSettings(rewrite_budget=1000)
"""Every file that these tests make is small, and worth filling."""

Months = Mapping[int, Sequence[int]]
"""The flights of each month."""


def rows_of(months: Months) -> pa.Table:
    rows = [{"flight": flight, "month": month} for month, flights in months.items() for flight in flights]
    return pa.Table.from_pylist(rows, schema=FLIGHTS)


def profile_of(months: Months) -> WorkloadProfile:
    return WorkloadProfile(
        incoming=tuple(IncomingRows(f"month={month}", len(flights)) for month, flights in months.items() if flights)
    )


@asynccontextmanager
async def filling_job(
    where: Backend | Table, months: Months, **named: Any
) -> AsyncIterator[tuple[WriteJob, TaskReport]]:
    """A job whose one task has written these rows into the files that were planned for them."""
    target = where if isinstance(where, Table) else table(where)
    named = {"mode": "append", "sizing": SIZING, "markers": MarkerSettings(kind="direct"), **named}
    storage = where if not isinstance(where, Table) else where._backend
    async with target.write(schema=FLIGHTS, partition_by=["month"], **named) as job:
        plan = await job.size(profile_of(months))
        yield job, await task_of(job, storage, months, plan.files)


async def task_of(
    job: WriteJob, backend: Backend, months: Months, planned: Sequence[PlannedFile], *, task: int = 0, attempt: int = 0
) -> TaskReport:
    """The real task, in a worker thread."""
    write = partial(
        write_task,
        job.ticket,
        rows_of(months),
        task=task,
        attempt=attempt,
        planned=one_a_partition(planned),
        backend=backend,
    )
    return await anyio.to_thread.run_sync(write)


def one_a_partition(planned: Sequence[PlannedFile]) -> list[PlannedFile]:
    return list({file.partition: file for file in reversed(planned)}.values())


async def appended(where: Backend | Table, months: Months, **named: Any) -> WriteResult:
    """A whole write that fills what it finds."""
    async with filling_job(where, months, **named) as (job, report):
        return await job.commit([report])


async def write_planned(job: WriteJob, backend: Backend, months: Months) -> TaskReport:
    """One task, on this loop, that does what the task writer does with planned files: virtual time waits for it."""
    planned = (await job.size(profile_of(months))).files
    paths = {file: f"{file.partition}/{name_of(job)}" for file in planned}
    await mark(job, backend, paths.values())
    files, fills = [], []
    for file, path in paths.items():
        written = publish(job.ticket, backend, path, await _old_and_new(file, backend, months))
        files.append(written)
        if file.fill is not None:
            fills.append(Fill(file.fill, (written.path,)))
    return TaskReport(instant=job.instant, task=0, attempt=0, files=tuple(files), fills=tuple(fills))


async def _old_and_new(file: PlannedFile, backend: Backend, months: Months) -> pa.Table:
    month = int(file.partition.removeprefix("month="))
    new = rows_of({month: months[month]})
    if file.fill is None:
        return new
    return pa.concat_tables([read_bytes(await backend.get(file.fill.path)), new])
