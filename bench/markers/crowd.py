"""Memory of ``tallymark serve`` with many tables and many jobs that are open at the same time."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import anyio
import anyio.to_thread
import psutil
import pyarrow as pa
from anyio.abc import TaskGroup, TaskStatus

from tallymark.backends import open_backend
from tallymark.bench.markers.outside import COLUMNS
from tallymark.bench.markers.targets import paths
from tallymark.bench.results import Table, column, number, size
from tallymark.bench.serve_process import serve_process
from tallymark.bench.stores import near
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.markers.loading import load_markers
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.rpc.client import JobClient
from tallymark.engine.settings import SharedServiceSettings
from tallymark.engine.table import open_table

AT_ONCE = 16
"""Jobs that are being opened, ended or served at a time."""

WAIT_S = 120.0
"""Time limit for an ack: sixteen jobs on one disk wait for each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    tables: int = 200
    jobs: int = 1_000
    """Open at the same time, the same number on each table."""
    markers: int = 100
    """Of each job and round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrowdRow:
    title: str = column("service")
    before: float = column("memory, idle", size)
    after: float = column("of all jobs", size)
    again: float = column("after a second round", size)
    markers: int = column("markers acked", number)
    missing: int = column("of these not in storage", number)


@dataclass(slots=True)
class _Jobs:
    """Jobs that are open, each with the table that it writes."""

    url: str
    """Of the service."""
    jobs: list[tuple[str, WriteJob]] = field(default_factory=list)
    is_over: anyio.Event = field(default_factory=anyio.Event)
    limiter: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(AT_ONCE))

    async def opened(self, tasks: TaskGroup, table: str) -> None:
        async with self.limiter:
            await tasks.start(self.open, table)

    async def open(self, table: str, *, task_status: TaskStatus[None]) -> None:
        service, columns = SharedServiceSettings(url=self.url), pa.schema(COLUMNS)
        async with open_table(table).write(
            schema=columns, mode="append", partition_by=["event_date"], service=service
        ) as job:
            self.jobs.append((table, job))
            task_status.started()
            await self.is_over.wait()

    async def mark(self, job: WriteJob, names: Sequence[str]) -> None:
        """Request markers as a task of the job does, by its own connection."""
        address = job.ticket.service
        assert address is not None, "the service has answered"

        def request() -> None:
            with JobClient(address, job.instant, wait_s=WAIT_S) as client:
                client.create(names)

        async with self.limiter:
            await anyio.to_thread.run_sync(request)

    async def stored(self) -> int:
        """Return how many markers of all jobs storage has."""
        found = 0
        for place, job in self.jobs:
            loaded = await load_markers(open_backend(place), marker_folder(job.instant), concurrency=AT_ONCE)
            found += len(loaded.lines)
        return found


def table(crowd: Crowd | None = None) -> Table:
    """Return the measured row. Raises ServeFailed."""
    crowd = crowd or Crowd()
    row = anyio.run(_row, crowd, backend="trio")
    what = f"{crowd.tables} tables, {crowd.jobs:,} open jobs, twice {crowd.markers} markers of each"
    return Table(title=f"memory of a service: {what}", rows=[row])


async def _row(crowd: Crowd) -> CrowdRow:
    with (
        tempfile.TemporaryDirectory() as folder,
        near(Path(tempfile.gettempdir())) as store,
        serve_process(store.url, store.options, Path(folder)) as served,
    ):
        process, open_jobs = psutil.Process(served.pid), _Jobs(served.url)
        memory = [process.memory_info().rss]
        async with anyio.create_task_group() as tasks:
            async with anyio.create_task_group() as opening:
                for at in range(crowd.jobs):
                    opening.start_soon(open_jobs.opened, tasks, f"{store.url}/{at % crowd.tables}")
            for first in (0, crowd.markers):
                async with anyio.create_task_group() as marking:
                    for _, job in open_jobs.jobs:
                        names = islice(paths(job.instant, 0), first, first + crowd.markers)
                        marking.start_soon(open_jobs.mark, job, list(names))
                memory.append(process.memory_info().rss)
            acked, stored = 2 * crowd.markers * crowd.jobs, await open_jobs.stored()
            open_jobs.is_over.set()
    return CrowdRow(
        title="tallymark serve",
        before=memory[0],
        after=memory[1],
        again=memory[2],
        markers=acked,
        missing=acked - stored,
    )


if __name__ == "__main__":
    from tallymark.bench.command import print_table

    print_table(table())
