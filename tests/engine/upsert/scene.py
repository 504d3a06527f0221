"""A whole write by key in one go: keys, lookups, plan, routing, tasks, commit."""

from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import anyio
import pyarrow as pa

from tallymark.backends import Backend
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.settings import MarkerSettings
from tallymark.engine.sizing.plan import PlannedFile
from tallymark.engine.sizing.tasks import tasks_of
from tallymark.engine.table import Table, open_table
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.task_writer import write_task
from tallymark.engine.upsert.keys import KeyReport, key_task
from tallymark.engine.upsert.locate import hit_counts, locate_task
from tallymark.engine.upsert.routing import routed
from tests.engine.tasks.scene import schema_of
from tests.support.parquet import read_bytes

T = TypeVar("T")

PEOPLE = schema_of(id=pa.int64(), land=pa.string(), at=pa.int64(), name=pa.string())
KEYED: dict[str, Any] = {
    "record_key": ["id"],
    "order_by": "at",
    "unique_in": "partition",
    "readers": "table",
    "partition_by": ["land"],
}


async def in_thread(act: Callable[..., T], *given: Any, **named: Any) -> T:
    return await anyio.to_thread.run_sync(partial(act, *given, **named))


def person(id_: int, land: str | None = "A", at: int | None = 0, name: str = "") -> dict[str, Any]:
    return {"id": id_, "land": land, "at": at, "name": name}


def people(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=PEOPLE)


def table_at(backend: Backend, **settings: Any) -> Table:
    return open_table("memory:", backend=backend, **settings)


@asynccontextmanager
async def changing(backend: Backend, mode: Any = "upsert", schema: pa.Schema = PEOPLE, **named: Any):
    named.setdefault("markers", MarkerSettings(kind="direct"))
    async with table_at(backend).write(schema=schema, mode=mode, **named) as job:
        yield job


class Changing:
    """The steps of one job on one batch."""

    def __init__(
        self,
        job: WriteJob,
        backend: Backend,
        rows: pa.Table,
        *,
        delete: Any = False,
        keep: bool = False,
        task_bytes: int = 1,
    ) -> None:
        self.job, self.backend, self.rows = job, backend, rows
        self._delete, self._keep, self._task_bytes = delete, keep, task_bytes
        self.hits: list[pa.RecordBatch] = []
        self.tasks: Sequence[Sequence[PlannedFile]] = ()

    async def keys(self, number: int = 0, parts: int = 1) -> KeyReport:
        """The report of one of this many key tasks, to which the rows are dealt."""
        part = self.rows.take(pa.array(range(number, self.rows.num_rows, parts), pa.int64()))
        return await in_thread(key_task, self.job.ticket, part, task=number, backend=self.backend)

    async def look_up(self, parts: int = 2) -> None:
        """With the rows dealt to this many key tasks."""
        for lookup in await self.job.look_up([await self.keys(number, parts) for number in range(parts)]):
            self.hits += await in_thread(lambda lookup=lookup: list(self._located(lookup)))

    def _located(self, lookup: Any) -> Any:
        return locate_task(self.job.ticket, lookup, backend=self.backend)

    async def plan(self) -> None:
        plan = await self.job.size(self.job.profile(hit_counts(self.hits)))
        self.tasks = tasks_of(plan, task_bytes=self._task_bytes)

    def parts(self) -> list[pa.Table]:
        """The changes of each task."""
        return routed(self.job.ticket, self.rows, self.hits, self.tasks, delete=self._delete, keep=self._keep)

    async def write(self) -> list[TaskReport]:
        job = self.job
        return [
            await in_thread(
                write_task,
                job.ticket,
                part,
                task=number,
                planned=self.tasks[number] if self.tasks else (),
                backend=self.backend,
            )
            for number, part in enumerate(self.parts())
        ]

    async def run(self) -> Any:
        await self.look_up()
        await self.plan()
        return await self.job.commit(await self.write())


async def changed(
    backend: Backend, *rows: dict[str, Any], mode: str = "upsert", delete: Any = False, keep: bool = False, **named: Any
) -> Any:
    """One write of these rows, by key unless it is an append or overwrite."""
    if keep:
        named["when_matched"] = "keep"
    async with changing(backend, mode, **named) as job:
        if mode in ("append", "overwrite"):
            return await job.commit([await in_thread(write_task, job.ticket, people(*rows), task=0, backend=backend)])
        return await Changing(job, backend, people(*rows), delete=True if mode == "delete" else delete, keep=keep).run()


async def rows_of(backend: Backend) -> list[dict[str, Any]]:
    """All rows of the table, in the order of its files."""
    found = []
    for file in (await table_at(backend).snapshot()).files:
        found += read_bytes(await backend.get(file.path)).to_pylist()
    return found
