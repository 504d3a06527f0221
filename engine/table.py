"""A table as callers see it: open it, write to it, query it, maintain it."""

import os
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from copy import copy
from dataclasses import replace
from typing import Unpack

import anyio.lowlevel
import pyarrow as pa

from tallymark.backends.contract import Backend
from tallymark.backends.open import open_backend
from tallymark.backends.options import StorageOptions
from tallymark.engine.background import background_tasks
from tallymark.engine.clock import Clock, SystemClock
from tallymark.engine.errors import CorruptObject, InvalidRequest, TableReplaced, UnsupportedTable
from tallymark.engine.inspection.as_of import AsOf, position_as_of
from tallymark.engine.inspection.clean_dry_run import plan_clean, plan_rollback
from tallymark.engine.inspection.explain import explain
from tallymark.engine.inspection.explain_text import Explanation
from tallymark.engine.inspection.file_sizes import SMALL_BYTES, FileSizes, SizeIndex
from tallymark.engine.inspection.leased_snapshot import lease_snapshot
from tallymark.engine.inspection.snapshot import Snapshot
from tallymark.engine.inspection.status import TableStatus, not_open, read_status
from tallymark.engine.inspection.table_view import TableView
from tallymark.engine.inspection.watch import InstantWatch
from tallymark.engine.instants.finish import Progress
from tallymark.engine.instants.open_instants import open_reservations
from tallymark.engine.instants.rollback import Ended
from tallymark.engine.instants.table_handle import TableChanged, TableHandle, TableMemory
from tallymark.engine.jobs.delete import delete_rows, purge_older
from tallymark.engine.jobs.file_plan import reference_files
from tallymark.engine.jobs.open_job import JobOptions, open_job
from tallymark.engine.jobs.prepare import prepare_table, read_properties
from tallymark.engine.jobs.request import Mode, WriteOptions, WriteRequest, check_where
from tallymark.engine.jobs.rerun import committed_job, find_committed
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.jobs.table_spec import TableSpec
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.maintenance.accept_loss import AcceptedLoss, accept_loss
from tallymark.engine.maintenance.checkpoint import leave_checkpoint
from tallymark.engine.maintenance.clean import CleanResult, clean
from tallymark.engine.maintenance.recovery import end_abandoned, end_instant
from tallymark.engine.maintenance.retention import Retention, hours_to_keep
from tallymark.engine.maintenance.store_time import StoreClock
from tallymark.engine.markers.loading import load_markers
from tallymark.engine.markers.name import MarkerName
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.partitions.path import partition_prefix
from tallymark.engine.planning.input_rows import Incoming
from tallymark.engine.planning.plan_delete import DeletePlan, plan_delete
from tallymark.engine.planning.plan_write import Foresight, plan_write
from tallymark.engine.planning.write_plan import WritePlan
from tallymark.engine.settings import (
    NO_SIZING,
    CommitSettings,
    LeaseSettings,
    MarkerSettings,
    ServiceSettings,
    SharedServiceSettings,
    SizingSettings,
    StreamSettings,
    TaskSettings,
    ViewSettings,
)
from tallymark.engine.streams.block import StreamBlock
from tallymark.engine.streams.compactor import StreamCompactor, merged_bytes_max
from tallymark.engine.streams.stream import Stream
from tallymark.engine.timeline.entry import DataFile, LogEntry
from tallymark.engine.timeline.instant import instant_time
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.reservation import Reservation
from tallymark.engine.views.checkpoint_writer import Checkpointed
from tallymark.engine.views.partitions import Partitions

DELETE_CONCURRENCY = 4
"""Tasks of ``Table.delete`` that run at once: enough to keep some cores and a store that is 30 ms away busy."""


class Table:
    """Made by ``open_table``. Has no connection. Each call reads what it needs; ``write`` remembers the log that
    earlier ones have read, and checks that it is still that of the table.
    """

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
        self._memory: tuple[object, TableMemory] | None = None
        """What its jobs have read, and the event loop that this belongs to."""
        self._sizes: SizeIndex | None = None
        self._store_clock: StoreClock | None = None

    @property
    def url(self) -> str:
        return self._backend.url

    @asynccontextmanager
    async def write(
        self,
        *,
        schema: pa.Schema | None = None,
        mode: Mode,
        markers: MarkerSettings | None = None,
        tasks: TaskSettings | None = None,
        sizing: SizingSettings | None = None,
        service: ServiceSettings | SharedServiceSettings | None = None,
        **request: Unpack[WriteOptions],
    ) -> AsyncIterator[WriteJob]:
        """Yield a write job for the block; if it is not committed when the block ends, it is rolled back.

        ``mode="overwrite"`` replaces the whole table, or with ``partition_overwrite="dynamic"`` those partitions that
        the input has rows for; a table without partitions is replaced whole in both cases, as in Spark. The table is
        created if nothing is at the URL; an existing one keeps its partitioning where ``partition_by`` is left out.
        Instants of dead writers are recovered first.

        ``partition={"year": 2013}``, values of the first partition columns, is the part of the table that all rows
        belong to: ``schema`` may lack those columns, and tasks fill them in; a row with another value fails its task.
        An overwrite then replaces that part, with ``"dynamic"`` those partitions of it that the input has rows for; a
        partition that is named in full is always replaced whole, as in Spark.

        ``only_partitions``, one such mapping or several, restricts the write: a call, or a row, that would touch
        anything else is refused. ``base`` is the position at which the caller has read the table: an overwrite replaces
        the files of its scope at that position, keeps files appended since, and conflicts if any of them was replaced
        since.

        ``txn="name:batch"`` names this write permanently: it is committed once, however often it is run. Where it was
        committed before, the job has its result in ``committed``, and nothing is written; two concurrent runs commit
        once.

        ``readers`` and ``retain_hours`` are for the write that creates the table, and fixed from then on: with
        ``"directory"`` (the default) replaced files are deleted right after the commit, and any reader of Parquet may
        read the directory at rest; with ``"table"`` they remain for ``retain_hours`` (24), for running queries and
        ``as_of``, and the table is read by its log or the Hudi timeline.

        ``mode="upsert"`` replaces rows of the table by those of the same record key and adds the others, and
        ``mode="delete"`` deletes the rows of these keys; both find them by ``WriteJob.look_up`` (docs/upserting.md).
        The key is given by the write that creates the table, and fixed then: ``record_key`` identifies a row,
        ``order_by`` decides between two of one key, in the input and against the stored row (the greater wins, null is
        the least, of equal ones the input's), and ``unique_in`` is ``"partition"`` or ``"table"``. Such a write needs
        ``readers``, too. ``when_matched`` leaves rows out whose key is there (``"keep"``), or refuses them
        (``"fail"``). With ``mode="delete"``, ``where`` deletes the rows that match it, in any table, and has no input;
        ``delete`` runs the steps of such a job.

        ``schema`` is that of the input; without it, the table's own is used.

        ``service`` is the service of the job's tasks, for their markers and lookups: by default one in this process, or
        where the environment variable ``TALLYMARK_SERVICE`` names one, that of ``tallymark serve``.

        ``sizing`` sets the size of files; with it, ``WriteJob.size`` plans them, and small files of the table are
        filled. Without it files are finished at ``SizingSettings().max_file_bytes``, and none is filled.

        Raises:
            InvalidRequest: mode, schema, partitions, base or ``readers`` do not fit the table, or the txn was
                committed by a write that was declared differently. Nothing was changed.
            UnsupportedTable: something else is at the URL; or nothing, and ``schema`` is left out.
        """
        spec = await self._spec(schema, WriteRequest.of(mode, **request))
        options = JobOptions(
            markers=markers or MarkerSettings(),
            tasks=tasks or TaskSettings(),
            service=service or SharedServiceSettings.of_environment(os.environ) or ServiceSettings(),
            sizing=sizing or _default_sizing(spec.request),
        )
        async with self._write(spec, options) as job:
            yield job

    def stream(
        self,
        *,
        schema: pa.Schema | None = None,
        settings: StreamSettings | None = None,
        markers: MarkerSettings | None = None,
        tasks: TaskSettings | None = None,
        **request: Unpack[WriteOptions],
    ) -> StreamBlock:
        """Return the block of a stream: any number of callers append rows, which share files and commits, and each call
        returns when its rows are committed. When the block ends, what was appended is committed first.

        ``async with`` yields a ``Stream`` of this event loop, ``with`` a ``BlockingStream`` for threads.

        The table is created if nothing is at the URL. ``schema`` and the options are those of an append by ``write``,
        but for ``txn``: ``Stream.append`` has its own way to be repeated.

        Raises as ``write``, when the block is entered.
        """
        if request.get("txn") is not None:
            raise InvalidRequest("txn: a stream has many commits; give producer and sequence to Stream.append")
        given = (schema, settings, markers, tasks, request)
        return StreamBlock(self._streaming(*given), elsewhere=copy(self)._streaming(*given))

    @asynccontextmanager
    async def _streaming(
        self,
        schema: pa.Schema | None,
        settings: StreamSettings | None,
        markers: MarkerSettings | None,
        tasks: TaskSettings | None,
        request: WriteOptions,
    ) -> AsyncIterator[Stream]:
        spec = await self._spec(schema, WriteRequest.of("append", **request))
        options = JobOptions(
            markers=markers or MarkerSettings(),
            tasks=tasks or TaskSettings(),
            service=ServiceSettings(),
            sizing=NO_SIZING,
        )
        memory = self._remembered()
        properties = await prepare_table(self._handle(memory=memory), spec)
        await memory.log.refresh()
        settings = settings or StreamSettings()
        merging = replace(options, sizing=replace(NO_SIZING, max_file_bytes=merged_bytes_max(settings)))
        compactor = StreamCompactor(
            lambda: self._write(spec, merging),
            lambda is_fresh: self._handle(lasts=True, memory=None if is_fresh else self._remembered()),
            properties,
            settings,
        )
        stream = Stream(
            lambda: self._write(spec, options),
            self._backend,
            properties,
            lambda: self._remembered().log.history,
            settings,
            compactor.added,
        )
        async with background_tasks() as tasks_:
            tasks_.start_soon(stream.run)
            tasks_.start_soon(compactor.run)
            yield stream
            stream.close()
            await stream.ended.wait()
            compactor.close()
            await compactor.ended.wait()

    @asynccontextmanager
    async def _write(self, spec: TableSpec, options: JobOptions) -> AsyncIterator[WriteJob]:
        async with AsyncExitStack() as stack:
            try:
                job = await self._open(spec, options, stack)
            except TableChanged:  # what this object has read of it is of no use any more
                self._memory = None
                job = await self._open(spec, options, stack)
            yield job

    async def _open(self, spec: TableSpec, options: JobOptions, stack: AsyncExitStack) -> WriteJob:
        """Return a job that ends with the stack. Raises as ``write``, and TableChanged."""
        handle = self._handle(lasts=True, memory=self._remembered())
        stack.callback(handle.close)
        try:
            properties = await prepare_table(handle, spec)
            if (committed := await find_committed(handle, properties, spec.request)) is not None:
                return committed_job(handle, properties, spec.request, committed, options.tasks)
            return await stack.enter_async_context(open_job(handle, properties, spec.request, options))
        except (CorruptObject, TableReplaced, UnsupportedTable):
            self._memory = None
            raise

    def _remembered(self) -> TableMemory:
        """Return what jobs of this object have read, of a table that was not replaced since, in this event loop."""
        loop = anyio.lowlevel.current_token()
        if self._memory is None or self._memory[0] != loop or self._memory[1].log.is_replaced:
            self._memory = loop, TableMemory(self._backend, self._commit, self._clock)
        return self._memory[1]

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
        ``WriteJob.size``. An upsert or delete is planned from what ``WriteJob.profile`` of a job has returned that was
        not committed. Without ``schema`` the table's own is used.

        Raises:
            InvalidRequest: what ``write`` would raise, or a task; or it is a dynamic overwrite and ``incoming`` is
                left out.
            ConflictError: files that were read at ``base`` have been replaced since.
            UnsupportedTable: something else is at the URL; or nothing, and ``schema`` is left out.
        """
        spec = await self._spec(schema, WriteRequest.of(mode, **request))
        foresight = Foresight(incoming=incoming, sizing=sizing or _default_sizing(spec.request))
        return await plan_write(self._handle(), spec, foresight)

    async def delete(
        self,
        where: str,
        *,
        txn: str | None = None,
        only_partitions: Mapping[str, object] | Sequence[Mapping[str, object]] | None = None,
        purge: bool = False,
        concurrency: int = DELETE_CONCURRENCY,
        tasks: TaskSettings | None = None,
    ) -> WriteResult:
        """Delete the rows that match a predicate, such as ``"user_id = 7 AND day < DATE '2024-01-01'"``, and commit.

        The grammar is a part of SQL (docs/upserting.md); rows for which the predicate is null stay. Files whose
        partition or key range proves that all rows match, or none, are not read. Of the others the columns of the
        predicate are, and those with rows of both kinds are rewritten. Where nothing matches, an empty commit remains.

        Older versions of a table with ``readers="table"`` have the rows until their retention is over. ``purge`` ends
        it for all of them after the commit, as ``purged`` does.

        ``concurrency`` is the number of tasks that run at once, in threads of this process. Each takes about 500 MB
        while it rewrites files. ``txn`` and ``only_partitions`` are those of ``write``.

        Raises:
            InvalidRequest: ``where`` does not fit the table, rows outside of ``only_partitions`` match, or the txn was
                committed by a write that was declared differently. Nothing was changed.
            ConflictError: another write has replaced a file with such rows since this one looked at it. Nothing of this
                write is left. Rows that others add in the meantime stay.
            UnsupportedTable: there is no table.
        """
        check_where(where)
        _check_concurrency(concurrency)
        options: WriteOptions = {"where": where, "txn": txn, "only_partitions": only_partitions}
        async with self.write(mode="delete", tasks=tasks, **options) as job:
            if job.committed is None:
                await delete_rows(job, self._backend, concurrency=concurrency)
        return await self.purged(job.result) if purge else job.result

    async def purged(self, result: WriteResult) -> WriteResult:
        """End the retention of every older version of the table, so that no file of it has rows that were deleted.

        Return the result of the delete. Its ``pending`` is None if nothing remains; otherwise it states what does, such
        as files that the lease of a reader protects. Queries that read an older version without a lease fail. Of a
        table with a record key the log is archived up to the delete, since its entries have the ranges of the keys of
        those files: ``timeline`` and ``as_of`` reach back no further.
        """
        properties = await self._properties()
        return await purge_older(self._handle(properties), properties, result)

    async def plan_delete(
        self,
        where: str,
        *,
        only_partitions: Mapping[str, object] | Sequence[Mapping[str, object]] | None = None,
        concurrency: int = DELETE_CONCURRENCY,
    ) -> DeletePlan:
        """Return what ``delete`` with the same arguments would do now. Reads what it would read to find the rows, and
        writes nothing.

        Raises:
            InvalidRequest, ConflictError, UnsupportedTable: as ``delete``.
        """
        check_where(where)
        _check_concurrency(concurrency)
        properties = await self._properties()
        request = WriteRequest(mode="delete", where=where, only_partitions=only_partitions)
        return await plan_delete(self._handle(properties), properties, request, concurrency=concurrency)

    async def snapshot(self, as_of: AsOf | None = None) -> Snapshot:
        """Return the table's files now, or at an earlier time: at a position, after an instant's commit, or at a time.

        Raises:
            UnsupportedTable: there is no table.
            InvalidRequest: ``as_of`` names no state of the table, or files of it are no longer retained.
        """
        properties = await self._properties()
        handle = self._handle(properties)
        position = None if as_of is None else await position_as_of(handle, properties, as_of)
        if position is None:
            await handle.log.refresh()
        return await Snapshot.of(handle, properties, position)

    @asynccontextmanager
    async def reading(self, as_of: AsOf | None = None) -> AsyncIterator[Snapshot]:
        """Yield a ``snapshot`` whose files remain for the duration of the block: no clean deletes them.

        A lease protects them from every clean; it is renewed as a writer's is (``LeaseSettings``). If this process
        dies, the lease no longer counts: at once for processes on this machine, or ``expiry_s`` after its last
        heartbeat.

        Raises:
            UnsupportedTable: there is no table.
            InvalidRequest: the table was created with ``readers="directory"``, which keeps no replaced files; or
                ``as_of`` names no state of the table, or files of it are no longer retained.
            TryAgain: storage gives no clear outcome of a clean that may delete them.
        """
        properties = await self._properties()
        async with lease_snapshot(self._handle(properties), properties, as_of) as snapshot:
            yield snapshot

    @asynccontextmanager
    async def view(self) -> AsyncIterator[TableView]:
        """Yield the table's file-system view for the block: it follows the log, and answers by partition.

        For repeated queries; ``snapshot`` is for one. Raises UnsupportedTable where there is no table.
        """
        properties = await self._properties()
        handle = self._handle(properties, lasts=True)
        view = TableView(handle, properties)
        try:
            await view.sync()
            await handle.preload(properties)
            yield view
        finally:
            handle.close()

    async def files(self, partition: str = "", *, small_below: int = SMALL_BYTES) -> FileSizes:
        """Return the sizes of the table's files, or of those below a partition path such as ``year=2013``.

        Raises:
            InvalidRequest: no partition of this table can be below that path, or ``small_below`` is negative.
            UnsupportedTable: there is no table.
        """
        if small_below < 0:
            raise InvalidRequest(f"small_below={small_below}: give a number of bytes, 0 or more")
        properties = await self._properties()
        prefix = partition_prefix(partition, properties.partition_by)
        handle = self._handle(properties)
        history = await handle.log.refresh()
        view = handle.view(properties).at(history.head)
        return await (self._sizes or SizeIndex()).at(view, prefix=prefix, small_below=small_below)

    async def explain(self, file: str) -> Explanation:
        """Explain why a file is kept, hidden or due for removal, and what will happen to it.

        ``file`` is a path below the table, a URL of it, or the bare name of a data file. The table is not listed.

        Raises:
            InvalidRequest: it is not below the table.
            UnsupportedTable: there is no table.
        """
        properties = await self._properties()
        return await explain(self._handle(properties), properties, file)

    async def properties(self) -> TableProperties | None:
        """Return the table's properties; None where nothing is at the URL yet.

        Raises UnsupportedTable where something else is.
        """
        return await read_properties(self._backend)

    async def partitions(self) -> Partitions:
        """Return the partitions that contain files now. Raises UnsupportedTable where there is no table."""
        properties = await self._properties()
        handle = self._handle(properties)
        await handle.log.refresh()
        return Partitions.of(handle.view(properties))

    async def reference_files(self, partitions: Iterable[str]) -> tuple[DataFile, ...]:
        """Return the live files of these partitions and the newest files: ``plan`` uses them for rows of these
        partitions.

        Raises UnsupportedTable where there is no table.
        """
        properties = await self._properties()
        handle = self._handle(properties)
        history = await handle.log.refresh()
        return await reference_files(handle.view(properties).at(history.head), partitions)

    async def status(self) -> TableStatus:
        """Return the table's properties, contents and open writers. Raises UnsupportedTable where there is no table."""
        properties = await self._properties()
        return await read_status(self._handle(properties), properties, sizes=self._sizes, clock=self._store_clock)

    async def timeline(self, *, after: int | None = None, limit: int | None = None) -> list[tuple[int, LogEntry]]:
        """Return the entries of the commit log that count, oldest first, with their positions; without archived ones
        (``CommitSettings.log_entry_count``).

        With ``limit`` they are the newest, or with ``after`` the first after that position. No other entries are read
        but those after the newest checkpoint.

        Raises InvalidRequest where entries after that position are archived.
        """
        log = self._handle(await self._properties()).log
        return await log.entries(after=after, limit=limit)

    async def open_instants(self) -> list[Reservation]:
        """Return the instants that are being written, or that dead writers have left."""
        return await open_reservations(self._handle(await self._properties()))

    async def markers(self, instant: str) -> list[MarkerName]:
        """Return the markers of an instant that is being written, or was left unfinished; sorted."""
        loaded = await load_markers(self._backend, marker_folder(instant), concurrency=self._commit.concurrency)
        return sorted(loaded.names)

    async def watch(self) -> InstantWatch:
        """Return a watch, which scans the markers of open instants repeatedly. Raises UnsupportedTable."""
        return InstantWatch(self._handle(await self._properties()))

    async def rollback(self, instant: str | None = None, *, dry_run: bool = False) -> tuple[Ended, ...]:
        """Roll back every instant whose writer is dead; or the named one, its writer dead or not.

        With ``dry_run`` nothing is changed, and the result is what would be, without fences.
        """
        properties = await self._properties()
        handle = self._handle(properties)
        if dry_run:
            return await plan_rollback(handle, instant)
        if instant is None:
            return await end_abandoned(handle, properties)
        named = [found for found in await open_reservations(handle) if found.instant == instant]
        if not named:
            raise not_open(instant)
        return (await end_instant(handle, properties, named[0]),)

    async def clean(
        self, *, retain_hours: float | None = None, dry_run: bool = False, progress: Progress | None = None
    ) -> CleanResult:
        """Roll back dead writers, as ``rollback()`` does, and delete files whose retention is over.

        Each write does that for replaced files at its end; ``retain_hours`` replaces the table's own value for this
        call alone. With ``dry_run`` nothing is deleted, and the result is what would be. ``progress`` receives how many
        replaced files are deleted, and of how many. If this call fails or dies, the next write or clean does the rest.

        Raises:
            UnsupportedTable: there is no table.
            InvalidRequest: ``retain_hours`` is not a number of hours, or the table keeps no replaced files.
        """
        properties = await self._properties()
        hours = hours_to_keep(properties, retain_hours)
        if dry_run:
            return await plan_clean(self._handle(properties), properties, hours)
        return await clean(self._handle(properties), properties, hours, progress)

    async def accept_loss(self) -> AcceptedLoss:
        """Continue the table from the log that is left, where its newest entries are lost (LostEntries).

        The checkpoints and commits of the Hudi timeline that show the lost entries are deleted, with the data files of
        these commits. Restore a copy instead if there is one. Where nothing is lost, nothing changes.

        Raises:
            UnsupportedTable: there is no table.
            CorruptObject: the rest of the log cannot be read without a checkpoint that is lost.
        """
        properties = await self._properties()
        return await accept_loss(self._handle(properties), properties)

    async def checkpoint(self) -> Checkpointed:
        """Write a checkpoint of the whole log, from which it is read on. Jobs do so from time to time.

        Where the newest one is of this position and sound, it is returned. Reads every part of it.

        Raises:
            UnsupportedTable: there is no table.
            TryAgain: other processes write checkpoints at the same time.
        """
        properties = await self._properties()
        handle = self._handle(properties, lasts=True)
        try:
            return await leave_checkpoint(handle, properties)
        finally:
            handle.close()

    async def _spec(self, schema: pa.Schema | None, request: WriteRequest) -> TableSpec:
        if schema is None:
            schema = (await self._properties()).schema
        if not isinstance(schema, pa.Schema):
            raise InvalidRequest(f"schema is {type(schema).__name__}; give a pyarrow.Schema")
        return TableSpec(
            name=_table_name(self.url),
            created=instant_time(self._clock.now()),
            schema=schema,
            request=request,
            retention=Retention(request.readers, request.retain_hours),
        )

    def _handle(
        self, properties: TableProperties | None = None, *, lasts: bool = False, memory: TableMemory | None = None
    ) -> TableHandle:
        handle = TableHandle(
            self._backend, self._commit, self._lease, self._clock, self._options, self._views, lasts, memory
        )
        if properties is not None:
            handle.log.identify(properties.id, properties.writer_features)
        return handle

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

    ``options`` determine how storage is reached, beside the URL; tasks get them, too. ``backend`` is used instead of
    ``open_backend(url, options=options)`` where it is given. ``views`` determines how calls cache the table's files.
    """
    return Table(
        backend if backend is not None else open_backend(url, options=options),
        options=options or StorageOptions(),
        commit=commit or CommitSettings(),
        lease=lease or LeaseSettings(),
        views=views or ViewSettings(),
        clock=clock or SystemClock(),
    )


def _check_concurrency(concurrency: int) -> None:
    if not isinstance(concurrency, int) or concurrency < 1:
        raise InvalidRequest(f"concurrency={concurrency!r}: give a number of tasks, 1 or more")


def _table_name(url: str) -> str:
    """Return the last part of the URL, with the characters that Hudi accepts in a table's name."""
    return re.sub(r"\W+", "_", url.rstrip("/").rpartition("/")[2], flags=re.ASCII) or "table"


def _default_sizing(request: WriteRequest) -> SizingSettings:
    return SizingSettings() if request.has_changes else NO_SIZING
