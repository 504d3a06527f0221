"""What the tests of this room share: a store with its own clock, tasks that mark and publish, a look around it all.

Tasks are of two kinds. ``write_rows`` runs on the job's own loop, so that virtual time and counted calls stay exact.
``write_in_thread`` is the real ``write_task`` in a worker thread, over the real service.
"""

import io
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from itertools import count
from typing import Any

import anyio
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallymark.backends import Backend
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.clock import Clock
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.markers.direct_flag import DirectFlag
from tallymark.engine.settings import CommitSettings, LeaseSettings, MarkerKind, MarkerSettings
from tallymark.engine.table import Table, open_table
from tallymark.engine.tasks.file_name import new_file_name
from tallymark.engine.tasks.marker_sources import DirectMarkers
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.task_writer import write_task
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile
from tests import table_invariants
from tests.support.archived import is_archivable, whole
from tests.support.faulty import FaultyBackend, Verb, lost_request
from tests.support.parquet import read_bytes

FLIGHTS = pa.schema([("flight", pa.int64()), ("month", pa.int32())])
LEASE = LeaseSettings()
TWO_MONTHS = {1: 3, 2: 2}
FAMILIES = (True, False)
"""Of stores: with staging, and without."""

FAMILIES_BY_COST = [
    pytest.param(True, id="staging"),
    pytest.param(False, id="no_staging", marks=pytest.mark.slow),
]
"""For tests of many crash points: the fast tier plays them on stores with staging only."""


class StoreClock:
    """The store's time, in seconds: it stands still until told."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now

    def pass_lease(self) -> None:
        """After this every writer that does not beat again looks dead."""
        self.now += LEASE.expiry_s + 1


class WallClock:
    """A clock that a test moves, or leaves where it is."""

    def __init__(self, moment: datetime = datetime(2026, 11, 21, 2, 3, 4, tzinfo=UTC)) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment

    def pass_s(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


class ArchivedBackend(MemoryBackend):
    """Storage that remembers what an archive deletes."""

    def __init__(self, *, has_staging: bool, now: "StoreClock") -> None:
        super().__init__(has_staging=has_staging, now=now)
        self.archived: dict[str, bytes] = {}

    async def delete(self, paths: Sequence[str]) -> None:
        found = {path: self._objects[path][0] for path in paths if path in self._objects and is_archivable(path)}
        self.archived = found | self.archived
        await super().delete(paths)


class Store:
    """A memory store of one family, its clock, and the view of its administrator."""

    def __init__(self, *, has_staging: bool) -> None:
        self.clock = StoreClock()
        self.backend = ArchivedBackend(has_staging=has_staging, now=self.clock)

    @cached_property
    def faulty(self) -> FaultyBackend:
        """The same storage, whose requests a test lets fail."""
        return FaultyBackend(self.backend)

    @property
    def stored(self) -> dict[str, bytes]:
        """All that is stored, read around the library."""
        return {path: data for path, (data, _) in self.backend._objects.items()}

    @property
    def objects(self) -> dict[str, bytes]:
        """All that is stored, and what was archived with the log: the whole log and its projection."""
        return whole(self.stored, self.backend.archived)

    @property
    def modified(self) -> dict[str, float]:
        return {path: modified for path, (_, modified) in self.backend._objects.items()}

    @property
    def log_entries(self) -> list[dict[str, Any]]:
        return table_invariants.log_entries(self.objects)

    @property
    def decisions(self) -> dict[str, dict[str, Any]]:
        return table_invariants.decisions(self.objects)

    @property
    def commits(self) -> list[dict[str, Any]]:
        return table_invariants.commits(self.objects)

    @property
    def committed_files(self) -> set[str]:
        return table_invariants.committed_files(self.objects)

    @property
    def data_files(self) -> set[str]:
        return table_invariants.data_files(self.objects)

    @property
    def retained_files(self) -> set[str]:
        return table_invariants.retained_files(self.objects)

    @property
    def fences(self) -> set[str]:
        return table_invariants.fences(self.objects)

    def check_at_rest(self) -> None:
        table_invariants.table_is_at_rest(self.objects)

    def check_projection(self) -> None:
        table_invariants.projection_follows_the_log(self.objects)

    def check_no_bookkeeping(self) -> None:
        table_invariants.no_bookkeeping_is_left(self.objects)

    def check_only_committed_files(self) -> None:
        table_invariants.only_committed_files_exist(self.objects)

    def check_only_commits_are_left(self) -> None:
        """Check that the log's files are all there is, and that no writer has left bookkeeping."""
        self.check_only_committed_files()
        self.check_no_bookkeeping()


class TickingClock:
    """A millisecond later each time it is asked: by chance no two writers have one instant."""

    def __init__(self) -> None:
        self._moments = (datetime(2026, 11, 21, 3, tzinfo=UTC) + timedelta(milliseconds=tick) for tick in count())
        self._passed = timedelta()

    def now(self) -> datetime:
        return next(self._moments) + self._passed

    def pass_s(self, seconds: float) -> None:
        self._passed += timedelta(seconds=seconds)


_ticking = TickingClock()


def table(backend: Backend, *, clock: Clock | None = None, **settings) -> Table:
    return open_table("memory:", backend=backend, clock=clock or _ticking, **settings)


def flights(months: Mapping[int, int] | None = None) -> pa.Table:
    """That many flights in each month."""
    months = TWO_MONTHS if months is None else months
    rows = [
        {"flight": 1000 * month + number, "month": month} for month, flown in months.items() for number in range(flown)
    ]
    return pa.Table.from_pylist(rows, schema=FLIGHTS)


def begin(where: Table | Backend, mode: Any = "append", **named):
    """``Table.write`` of flights by month; with direct markers, unless told otherwise.

    Its tasks may run in any process; with ``is_private`` in this one alone.
    """
    target = where if isinstance(where, Table) else table(where)
    named.setdefault("markers", MarkerSettings(kind="direct"))
    is_private = named.pop("is_private", False)
    job = target.write(schema=FLIGHTS, mode=mode, partition_by=named.pop("partition_by", ["month"]), **named)
    return job if is_private else _shared(job)


@asynccontextmanager
async def _shared(writing: Any) -> AsyncIterator[Any]:
    async with writing as job:
        job.ticket.encode()
        yield job


def name_of(job: WriteJob, *, task: int = 0, attempt: int = 0) -> str:
    return new_file_name(instant=job.instant, task=task, stage=0, attempt=attempt)


async def mark(job: WriteJob, backend: Backend, paths: Iterable[str]) -> None:
    """Get the markers as a task of this job would."""
    if job.ticket.marker_kind == "direct":
        await mark_directly(job, backend, paths)
    else:
        await job._directory.create(*paths)


async def mark_directly(job: WriteJob, backend: Backend, paths: Iterable[str]) -> None:
    """Put the markers as a task of this job would that has no service, or none within reach."""
    flag = DirectFlag() if job.ticket.marker_kind == "batched" else None
    await DirectMarkers(_on_no_loop, backend, job.ticket, flag=flag)._put("CREATE", list(paths))


def _on_no_loop(*_: object) -> Any:
    raise AssertionError("put at once")


def parquet(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    return sink.getvalue()


def rows_in(objects: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """The rows of all committed files, read from the files themselves."""
    paths = sorted(table_invariants.committed_files(objects))
    return [row for path in paths for row in read_bytes(objects[path]).to_pylist()]


def publish(ticket: WriteTicket, backend: Backend, path: str, rows: pa.Table) -> DataFile:
    """The second half of a task: the marked file comes to its path. Does not wait, on a memory store."""
    file = backend.new_file(path, staging=ticket.staging)
    data = parquet(rows)
    file.sink.write(data)
    file.publish()
    partition, _, name = path.rpartition("/")
    return DataFile(partition, name, rows.num_rows, len(data))


async def write_rows(
    job: WriteJob, backend: Backend, months: Mapping[int, int] | None = None, *, task: int = 0, attempt: int = 0
) -> TaskReport:
    """One attempt of one task, on this loop: mark a file for each month, then publish each; as ``write_task`` does."""
    if job.ticket.is_committed:
        return TaskReport(instant=job.instant, task=task, attempt=attempt, files=())
    paths = {
        f"month={month}/{name_of(job, task=task, attempt=attempt)}": flights({month: flown})
        for month, flown in (months or TWO_MONTHS).items()
    }
    await mark(job, backend, paths)
    files = [publish(job.ticket, backend, path, rows) for path, rows in paths.items()]
    return TaskReport(instant=job.instant, task=task, attempt=attempt, files=tuple(files))


async def write_in_thread(job: WriteJob, backend: Backend, rows: pa.Table, **named) -> TaskReport:
    """The real task, in a worker thread."""
    named.setdefault("task", 0)
    return await anyio.to_thread.run_sync(partial(write_task, job.ticket, rows.to_batches(), backend=backend, **named))


async def committed(
    where: Backend | Table,
    mode: str = "append",
    months: Mapping[int, int] | None = None,
    *,
    clock: Clock | None = None,
    **named,
):
    """A whole write in one go; returns its result."""
    target = where if isinstance(where, Table) else table(where, clock=clock)
    async with begin(target, mode, **named) as job:
        report = await write_rows(job, target._backend, months)
        await job.commit([report])
    return job.committed


def impatient(decision_timeout_s: float = 120.0, **named) -> CommitSettings:
    return CommitSettings(decision_timeout_s=decision_timeout_s, **named)


def die(storage: FaultyBackend) -> None:
    """Nothing of this process reaches storage any more."""
    verbs: tuple[Verb, ...] = ("get", "put", "put_new", "list", "delete", "close_staging")
    storage.add(*map(lost_request, verbs))


async def abandon(store: Store, kind: MarkerKind = "batched", mode: str = "append") -> str:
    """A writer that is gone with its files published and nothing committed; returns its instant."""
    storage = FaultyBackend(store.backend)
    async with begin(storage, mode, markers=MarkerSettings(kind=kind)) as job:
        await write_rows(job, storage)
        die(storage)
    return str(job.instant)
