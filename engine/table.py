"""A table, seen from outside: open it, write to it, ask what it holds, put it in order."""

import os
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Unpack

import pyarrow as pa

from tallymark.backends.contract import Backend
from tallymark.backends.open import open_backend
from tallymark.backends.options import StorageOptions
from tallymark.engine.clock import Clock, SystemClock
from tallymark.engine.errors import InvalidRequest, UnsupportedTable
from tallymark.engine.inspection.as_of import AsOf, position_as_of
from tallymark.engine.inspection.clean_dry_run import plan_clean
from tallymark.engine.inspection.explain import explain
from tallymark.engine.inspection.explain_text import Explanation
from tallymark.engine.inspection.file_sizes import SMALL_BYTES, FileSizes
from tallymark.engine.inspection.leased_snapshot import lease_snapshot
from tallymark.engine.inspection.snapshot import Snapshot
from tallymark.engine.inspection.status import TableStatus, read_status
from tallymark.engine.inspection.table_view import TableView
from tallymark.engine.inspection.watch import InstantWatch
from tallymark.engine.instants.finish import Progress
from tallymark.engine.instants.rollback import Ended
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.file_plan import reference_files
from tallymark.engine.jobs.open_job import JobOptions, open_job
from tallymark.engine.jobs.prepare import prepare_table, read_properties
from tallymark.engine.jobs.request import Mode, WriteOptions, WriteRequest
from tallymark.engine.jobs.rerun import committed_job, find_committed
from tallymark.engine.jobs.table_spec import TableSpec
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.maintenance.checkpoint import leave_checkpoint
from tallymark.engine.maintenance.clean import CleanResult, clean, end_abandoned
from tallymark.engine.maintenance.recovery import end_instant, open_reservations
from tallymark.engine.maintenance.retention import Retention, hours_to_keep
from tallymark.engine.markers.loading import load_markers
from tallymark.engine.markers.name import MarkerName
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.partitions.prefix import partition_prefix
from tallymark.engine.planning.input_rows import Incoming
from tallymark.engine.planning.plan_write import Foresight, plan_write
from tallymark.engine.planning.write_plan import WritePlan
from tallymark.engine.settings import (
    NO_SIZING,
    CommitSettings,
    LeaseSettings,
    MarkerSettings,
    ServiceSettings,
    SizingSettings,
    TaskSettings,
    ViewSettings,
)
from tallymark.engine.timeline.entry import DataFile, LogEntry
from tallymark.engine.timeline.instant import instant_time
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.reservation import Reservation
from tallymark.engine.timeline.scope import is_below
from tallymark.engine.views.checkpoint_writer import Checkpointed
from tallymark.engine.views.partitions import Partitions


class Table:
    """Made by ``open_table``. Holds no connection and no state of storage: each call reads what it needs."""

    def __init__(
        self,
        backend: Backend,
        *,
        options: StorageOptions,
        commit: CommitSettings,
        lease: LeaseSettings,
        views: ViewSettings,
        clock: Clock,
    ) -> None:
        self._backend = backend
        self._options = options
        self._commit = commit
        self._lease = lease
        self._views = views
        self._clock = clock

    @property
    def url(self) -> str:
        return self._backend.url

    @asynccontextmanager
    async def write(
        self,
        *,
        schema: pa.Schema,
        mode: Mode,
        markers: MarkerSettings | None = None,
        tasks: TaskSettings | None = None,
        sizing: SizingSettings | None = None,
        service: ServiceSettings | None = None,
        **request: Unpack[WriteOptions],
    ) -> AsyncIterator[WriteJob]:
        """Yield a write job for the block; what is not committed when the block ends is rolled back.

        ``mode="overwrite"`` replaces the whole table, or with ``partition_overwrite="dynamic"`` those partitions that
        the input has rows for; a table without partitions is replaced whole either way, as in Spark. The table is
        created if nothing is at the URL; an existing one keeps its partitioning where ``partition_by`` is left out.
        What earlier writers died over is put in order first.

        ``partition={"year": 2013}``, values of the first partition columns, is where all rows go: ``schema`` may lack
        those columns, and tasks fill them in; a row with another value fails its task. An overwrite then replaces all
        that lies there, with ``"dynamic"`` those partitions of it that the input has rows for; a partition that is
        named in full is replaced whole either way, as in Spark.

        ``only_partitions``, one such mapping or several, fences the write in: a call, or a row, that would touch
        anything else is refused. ``base`` is the position that the caller has read the table at: an overwrite replaces
        what lay in its scope then, keeps what was appended since, and conflicts if any of it was replaced since.

        ``txn="name:batch"`` names this write permanently: it is committed once, however often it is run. Where it was
        committed before, the job has its result in ``committed``, and nothing is written; two that run at once commit
        once.

        ``readers`` and ``retain_hours`` are for the write that creates the table, and fixed from then on: with
        ``"directory"`` (the default) replaced files go right after the commit, and anything that reads Parquet may read
        the directory at rest; with ``"table"`` they stay for ``retain_hours`` (24), for running queries and ``as_of``,
        and the table is read by its log or the Hudi timeline.

        ``sizing`` says how large files are to be; with it, ``WriteJob.size`` plans them, and small files of the table
        are filled. Without it files of ``SizingSettings().max_file_bytes`` are finished, and none is filled.

        Raises:
            InvalidRequest: mode, schema, partitions, base or ``readers`` are not what the table takes, or the txn was
                committed by a write that was declared otherwise. Nothing was changed.
            UnsupportedTable: something else is at the URL.
        """
        spec = self._spec(schema, WriteRequest.of(mode, **request))
        options = JobOptions(
            markers=markers or MarkerSettings(),
            tasks=tasks or TaskSettings(),
            service=service or ServiceSettings(),
            sizing=sizing or NO_SIZING,
        )
        handle = self._handle(lasts=True)
        try:
            properties = await prepare_table(handle, spec)
            if (committed := await find_committed(handle, properties, spec.request)) is not None:
                yield committed_job(handle, properties, committed, options.tasks)
                return
            async with open_job(handle, properties, spec.request, options) as job:
                yield job
        finally:
            handle.close()

    async def plan(
        self,
        *,
        mode: Mode,
        schema: pa.Schema | None = None,
        sizing: SizingSettings | None = None,
        incoming: Incoming | None = None,
        **request: Unpack[WriteOptions],
    ) -> WritePlan:
        """Return what ``write`` with the same keywords would do now: the files that it would remove and add.

        Nothing is written. ``incoming`` describes the input: its rows, counted by task (``CountedRows``) or by
        partition (``IncomingRows``, or the ``WorkloadProfile`` that ``WriteJob.size`` takes), or the paths of the
        partitions that it has rows for. Where rows are counted and ``sizing`` is on, files are planned by the code of
        ``WriteJob.size``. Without ``schema`` the table's own is used.

        Raises:
            InvalidRequest: what ``write`` would raise, or a task; or it is a dynamic overwrite and ``incoming`` is
                left out.
            ConflictError: what was read at ``base`` has been replaced since.
            UnsupportedTable: something else is at the URL; or nothing, and ``schema`` is left out.
        """
        checked = WriteRequest.of(mode, **request)
        if schema is None:
            schema = (await self._properties()).schema
        spec = self._spec(schema, checked)
        foresight = Foresight(incoming=incoming, sizing=sizing or NO_SIZING)
        return await plan_write(self._handle(), spec, foresight)

    async def snapshot(self, as_of: AsOf | None = None) -> Snapshot:
        """Return what the table holds now, or held then: at a position, after an instant's commit, or at a time.

        Raises:
            UnsupportedTable: there is no table.
            InvalidRequest: ``as_of`` names nothing that was, or files of it are no longer retained.
        """
        handle = self._handle()
        properties = await self._properties()
        position = None if as_of is None else await position_as_of(handle, properties, as_of)
        if position is None:
            await handle.log.refresh()
        return await Snapshot.of(handle, properties, position)

    @asynccontextmanager
    async def reading(self, as_of: AsOf | None = None) -> AsyncIterator[Snapshot]:
        """As ``snapshot``, and its files stay as long as the block lasts: no clean deletes them.

        A lease states that to every cleaner; it is renewed as a writer's is (``LeaseSettings``). If this process
        dies it no longer counts: at once for others on this machine, or ``expiry_s`` after its last heartbeat.

        Raises:
            UnsupportedTable: there is no table.
            InvalidRequest: the table was made with ``readers="directory"``, which keeps no replaced files; or
                ``as_of`` names nothing that was, or files of it are no longer retained.
            TryAgain: storage gives no clear outcome of a clean that may delete them.
        """
        async with lease_snapshot(self._handle(), await self._properties(), as_of) as snapshot:
            yield snapshot

    @asynccontextmanager
    async def view(self) -> AsyncIterator[TableView]:
        """Yield the table's file-system view for the block: it follows the log, and answers partition by partition.

        For repeated queries; ``snapshot`` is for one. Raises UnsupportedTable where there is no table.
        """
        properties = await self._properties()
        handle = self._handle(lasts=True)
        view = TableView(handle, properties)
        try:
            await view.sync()
            await handle.preload(properties)
            yield view
        finally:
            handle.close()

    async def files(self, partition: str = "", *, small_below: int = SMALL_BYTES) -> FileSizes:
        """Return how large the table's files are now, or those below a partition path such as ``year=2013``.

        Raises:
            InvalidRequest: no partition of this table can lie below that path, or ``small_below`` is negative.
            UnsupportedTable: there is no table.
        """
        if small_below < 0:
            raise InvalidRequest(f"small_below={small_below}: give a number of bytes, 0 or more")
        snapshot = await self.snapshot()
        prefix = partition_prefix(partition, snapshot.partition_by)
        files = [file for file in snapshot.files if is_below(file.partition, prefix)]
        return FileSizes.of(files, position=snapshot.position, small_below=small_below)

    async def explain(self, file: str) -> Explanation:
        """Why a file is kept, hidden or due for removal, and what will become of it.

        ``file`` is a path below the table, a URL of the same, or the bare name of a data file. The table is not listed.

        Raises:
            InvalidRequest: it does not lie below the table.
            UnsupportedTable: there is no table.
        """
        return await explain(self._handle(), await self._properties(), file)

    async def properties(self) -> TableProperties | None:
        """Return what the table is; None where nothing is at the URL yet.

        Raises UnsupportedTable where something else is.
        """
        return await read_properties(self._backend)

    async def partitions(self) -> Partitions:
        """Return which partitions hold files now. Raises UnsupportedTable where there is no table."""
        properties = await self._properties()
        handle = self._handle()
        await handle.log.refresh()
        return Partitions.of(handle.view(properties))

    async def reference_files(self, partitions: Iterable[str]) -> tuple[DataFile, ...]:
        """Return the live files of these partitions and of the newest: what ``plan`` goes by for rows of these
        partitions.

        Raises UnsupportedTable where there is no table.
        """
        properties = await self._properties()
        handle = self._handle()
        history = await handle.log.refresh()
        return await reference_files(handle.view(properties).at(history.head), partitions)

    async def status(self) -> TableStatus:
        """Return what the table is and holds, and who is writing it. Raises UnsupportedTable where there is none."""
        return await read_status(self._handle(), await self._properties())

    async def timeline(self) -> list[tuple[int, LogEntry]]:
        """Return the entries of the commit log that count, oldest first, with their positions."""
        await self._properties()
        log = self._handle().log
        await log.refresh()
        return list((await log.reach(0)).after(0))

    async def open_instants(self) -> list[Reservation]:
        """Return the instants that are being written, or that dead writers have left."""
        await self._properties()
        return await open_reservations(self._handle())

    async def markers(self, instant: str) -> list[MarkerName]:
        """Return the markers of an instant that is being written, or was left unfinished; sorted."""
        loaded = await load_markers(self._backend, marker_folder(instant), concurrency=self._commit.concurrency)
        return sorted(loaded.names)

    async def watch(self) -> InstantWatch:
        """For looks at the markers of open instants, one after the other. Raises UnsupportedTable."""
        await self._properties()
        return InstantWatch(self._handle())

    async def rollback(self, instant: str | None = None) -> tuple[Ended, ...]:
        """Roll back every instant whose writer is dead; or the one that is named, its writer dead or not."""
        properties = await self._properties()
        handle = self._handle()
        if instant is None:
            return await end_abandoned(handle, properties)
        named = [found for found in await open_reservations(handle) if found.instant == instant]
        if not named:
            raise InvalidRequest(f"instant {instant!r} is not open; 'tallymark status' lists those that are")
        return (await end_instant(handle, properties, named[0]),)

    async def clean(
        self, *, retain_hours: float | None = None, dry_run: bool = False, progress: Progress | None = None
    ) -> CleanResult:
        """Put the table in order: as ``rollback()``, and remove what has been kept for long enough.

        Each write does that for replaced files at its end; ``retain_hours`` in place of the table's own is for this
        call alone. With ``dry_run`` nothing is deleted, and the result is what would be. ``progress`` receives how many
        replaced files are deleted, and of how many. Whatever this call dies over, the next write or clean does.

        Raises:
            UnsupportedTable: there is no table.
            InvalidRequest: ``retain_hours`` is not a number of hours, or the table keeps no replaced files.
        """
        properties = await self._properties()
        hours = hours_to_keep(properties, retain_hours)
        if dry_run:
            return await plan_clean(self._handle(), properties, hours)
        return await clean(self._handle(), properties, hours, progress)

    async def checkpoint(self) -> Checkpointed:
        """Leave a checkpoint of all that the log holds by now, from which it is read on; jobs do so now and then.

        Where the newest one is of this position and sound, it is returned. Reads every part of it.

        Raises:
            UnsupportedTable: there is no table.
            TryAgain: others leave checkpoints at the same time.
        """
        properties = await self._properties()
        handle = self._handle(lasts=True)
        try:
            return await leave_checkpoint(handle, properties)
        finally:
            handle.close()

    def _spec(self, schema: pa.Schema, request: WriteRequest) -> TableSpec:
        if not isinstance(schema, pa.Schema):
            raise InvalidRequest(f"schema is {type(schema).__name__}; give a pyarrow.Schema")
        return TableSpec(
            name=_table_name(self.url),
            created=instant_time(self._clock.now()),
            schema=schema,
            request=request,
            retention=Retention(request.readers, request.retain_hours),
        )

    def _handle(self, *, lasts: bool = False) -> TableHandle:
        return TableHandle(
            self._backend, self._commit, self._lease, self._clock, self._options, self._views, lasts=lasts
        )

    async def _properties(self) -> TableProperties:
        properties = await read_properties(self._backend)
        if properties is None:
            raise UnsupportedTable(f"{self.url} holds no table yet; the first write creates it")
        return properties


def open_table(
    url: str | os.PathLike[str],
    *,
    options: StorageOptions | None = None,
    backend: Backend | None = None,
    commit: CommitSettings | None = None,
    lease: LeaseSettings | None = None,
    views: ViewSettings | None = None,
    clock: Clock | None = None,
) -> Table:
    """Return the table at a URL, whether it exists yet or not. No I/O.

    ``options`` say how storage is reached where the URL does not; tasks get them, too. ``backend`` is used instead of
    ``open_backend(url, options=options)`` where it is given. ``views`` says how calls keep what the table holds.
    """
    return Table(
        backend if backend is not None else open_backend(url, options=options),
        options=options or StorageOptions(),
        commit=commit or CommitSettings(),
        lease=lease or LeaseSettings(),
        views=views or ViewSettings(),
        clock=clock or SystemClock(),
    )


def _table_name(url: str) -> str:
    """Return the last part of the URL, in the characters that Hudi takes for a table's name."""
    return re.sub(r"\W+", "_", url.rstrip("/").rpartition("/")[2], flags=re.ASCII) or "table"
