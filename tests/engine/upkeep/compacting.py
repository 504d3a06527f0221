"""Compactions by hand, and writers that do something in the middle of one."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from tallymark.backends import Backend
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.table import Table
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.upkeep.compact import Compaction, compact
from tests.engine.jobs.scene import FLIGHTS, table

Act = Callable[[], Awaitable[object]]
TARGET = 100_000


class Interrupted:
    """A job that lets others act before it claims its files, or before it commits."""

    def __init__(self, job: WriteJob, *, before_claim: Act | None, before_commit: Act | None) -> None:
        self._job = job
        self._before_claim = before_claim
        self._before_commit = before_commit

    @property
    def ticket(self) -> WriteTicket:
        return self._job.ticket

    @property
    def instant(self) -> str:
        return self._job.instant

    async def claim(self, files: Iterable[DataFile]) -> None:
        if self._before_claim is not None:
            await self._before_claim()
        await self._job.claim(files)

    async def commit(self, reports: Sequence[TaskReport]) -> WriteResult:
        if self._before_commit is not None:
            await self._before_commit()
        return await self._job.commit(reports)


async def compacted(
    where: Backend | Table,
    *months: int,
    before_claim: Act | None = None,
    before_commit: Act | None = None,
    target_bytes: int = TARGET,
    is_quiet: bool = True,
    properties: TableProperties | None = None,
    **named: Any,
) -> Compaction:
    """One call of ``compact`` for these months."""
    target = where if isinstance(where, Table) else table(where)

    @asynccontextmanager
    async def opened() -> AsyncIterator[WriteJob]:
        async with target.write(mode="append", schema=FLIGHTS, partition_by=["month"], **named) as job:
            yield cast("WriteJob", Interrupted(job, before_claim=before_claim, before_commit=before_commit))

    properties = properties or await target.properties()
    assert properties is not None, "there is a table"
    handle = target._handle(lasts=True)
    try:
        partitions = {f"month={month}": is_quiet for month in months}
        return await compact(opened, handle, properties, partitions, target_bytes=target_bytes)
    finally:
        handle.close()
