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
from tallymark.bench.serve_process import ServeProcess, serve_process
from tallymark.bench.stores import MarkerStore, near
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.markers.loading import load_markers
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.rpc.client import JobClient
from tallymark.engine.rpc.shared_service import shared_address
from tallymark.engine.settings import SharedServiceSettings
from tallymark.engine.table import open_table

LIMITS_MB = (512,)
"""Of memory: the usual one, which all of these jobs fit in. Of a smaller one jobs beyond it are refused."""

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

    store: MarkerStore
    url: str
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


def table(crowd: Crowd | None = None) -> Table:
    """Return a row per limit. Raises ServeFailed."""
    crowd = crowd or Crowd()
    rows = anyio.run(_rows, crowd, backend="trio")
    what = f"{crowd.tables} tables, {crowd.jobs:,} open jobs, twice {crowd.markers} markers of each"
    return Table(title=f"memory of a service: {what}", rows=rows)


async def _rows(crowd: Crowd) -> list[CrowdRow]:
    rows = []
    with tempfile.TemporaryDirectory() as folder, near(Path(tempfile.gettempdir())) as store:
        secret = Path(folder) / "secret"
        with serve_process(store.url, store.options, Path(folder)) as first:
            async with anyio.create_task_group() as tasks:
                open_jobs = _Jobs(store, first.url)
                async with anyio.create_task_group() as opening:
                    for at in range(crowd.jobs):
                        opening.start_soon(open_jobs.opened, tasks, f"{store.url}/{at % crowd.tables}")
                for limit_mb in LIMITS_MB:
                    arguments = ("--memory-mb", str(limit_mb), "--secret", str(secret))
                    with serve_process(store.url, store.options, Path(folder) / str(limit_mb), *arguments) as served:
                        rows.append(await _row(open_jobs, served, limit_mb, crowd.markers))
                open_jobs.is_over.set()
    return rows


async def _row(open_jobs: _Jobs, served: ServeProcess, limit_mb: int, markers: int) -> CrowdRow:
    process = psutil.Process(served.pid)
    memory = [process.memory_info().rss]
    for first in (0, markers):
        async with anyio.create_task_group() as tasks:
            for place, job in open_jobs.jobs:
                names = islice(paths(job.instant, limit_mb), first, first + markers)
                tasks.start_soon(_mark, open_jobs, served.url, place, job.instant, list(names))
        memory.append(process.memory_info().rss)
    return CrowdRow(
        title=f"--memory-mb {limit_mb}",
        before=memory[0],
        after=memory[1],
        again=memory[2],
        markers=2 * markers * len(open_jobs.jobs),
        missing=2 * markers * len(open_jobs.jobs) - await _stored(open_jobs, limit_mb),
    )


async def _mark(open_jobs: _Jobs, url: str, place: str, instant: str, names: Sequence[str]) -> None:
    """Request markers as a task of the job does, by its own connection."""
    async with open_jobs.limiter:
        address = await shared_address(SharedServiceSettings(url=url), place, instant)

        def request() -> None:
            with JobClient(address, instant, wait_s=WAIT_S) as client:
                client.create(names)

        await anyio.to_thread.run_sync(request)


async def _stored(open_jobs: _Jobs, series: int) -> int:
    """Return how many of the markers of a series storage has."""
    found = 0
    for place, job in open_jobs.jobs:
        loaded = await load_markers(open_backend(place), marker_folder(job.instant), concurrency=AT_ONCE)
        found += sum(f"/{series:08x}-" in line for line in loaded.lines)
    return found


if __name__ == "__main__":
    from tallymark.bench.command import print_table

    print_table(table())
