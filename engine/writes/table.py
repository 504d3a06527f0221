"""A table, seen from outside: open it, write to it, ask what it holds, put it in order."""

import logging
import re
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import get_args

import anyio
import pyarrow as pa
from anyio.abc import TaskGroup

from tallymark.backends.contract import Backend
from tallymark.backends.open import open_backend
from tallymark.engine.background import background_tasks
from tallymark.engine.clock import Clock, SystemClock
from tallymark.engine.errors import InvalidRequest, TallymarkError, UnsupportedTable
from tallymark.engine.files.ticket import WriteTicket
from tallymark.engine.markers.engine import MarkerEngine, open_marker_engine
from tallymark.engine.markers.loading import load_markers
from tallymark.engine.markers.name import MarkerName
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.service.address import ServiceAddress
from tallymark.engine.service.server import MarkerServer
from tallymark.engine.settings import CommitSettings, LeaseSettings, MarkerSettings, ServiceSettings, TaskSettings
from tallymark.engine.timeline.entry import LogEntry
from tallymark.engine.timeline.instant import instant_time
from tallymark.engine.timeline.lease import Lease, beat_path
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.reservation import Reservation
from tallymark.engine.writes.begin import reserve
from tallymark.engine.writes.clean import CleanResult, clean, end_abandoned
from tallymark.engine.writes.finish import staging_folder
from tallymark.engine.writes.handle import TableHandle
from tallymark.engine.writes.help import end_instant, help_others, open_reservations
from tallymark.engine.writes.prepare import prepare_table, read_properties
from tallymark.engine.writes.rollback import Ended, roll_back
from tallymark.engine.writes.snapshot import Snapshot
from tallymark.engine.writes.status import TableStatus, read_status
from tallymark.engine.writes.write_job import Mode, PartitionOverwrite, WriteBase, WriteJob

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """How one write goes about it."""

    markers: MarkerSettings
    tasks: TaskSettings
    service: ServiceSettings


class Table:
    """Made by ``open_table``. Holds no connection and no state of storage: each call reads what it needs."""

    def __init__(self, backend: Backend, *, commit: CommitSettings, lease: LeaseSettings, clock: Clock) -> None:
        self._backend = backend
        self._commit = commit
        self._lease = lease
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
        partition_by: Sequence[str] = (),
        partition_overwrite: PartitionOverwrite = "static",
        markers: MarkerSettings | None = None,
        tasks: TaskSettings | None = None,
        service: ServiceSettings | None = None,
    ) -> AsyncIterator[WriteJob]:
        """A write job for the block; what is not committed when the block ends is rolled back.

        ``mode="overwrite"`` replaces the whole table, or with ``partition_overwrite="dynamic"`` those partitions that
        the input has rows for. The table is created if nothing is at the URL; an existing one keeps its partitioning
        where ``partition_by`` is left out. What earlier writers died over is put in order first.

        Raises:
            InvalidRequest: mode, schema or partition columns are not what the table takes. Nothing was changed.
            UnsupportedTable: something else is at the URL.
        """
        _check_modes(mode, partition_overwrite)
        wanted = TableProperties(
            name=_table_name(self.url),
            partition_by=tuple(partition_by),
            schema=schema,
            created=instant_time(self._clock.now()),
        )
        settings = JobSettings(
            markers=markers or MarkerSettings(), tasks=tasks or TaskSettings(), service=service or ServiceSettings()
        )
        handle = self._handle()
        properties = await prepare_table(handle, wanted)
        async with background_tasks() as background:
            job = await self._begin(handle, properties, mode, partition_overwrite, settings, background)
            try:
                yield job
            finally:
                await _end(job, handle.commit_settings.end_timeout_s)

    async def snapshot(self) -> Snapshot:
        """What the table holds now. Raises UnsupportedTable where there is none."""
        handle = self._handle()
        properties = await self._properties()
        return Snapshot.of(await handle.log.refresh(), properties, url=self.url)

    async def status(self) -> TableStatus:
        """What the table is and holds, and who is writing it. Raises UnsupportedTable where there is none."""
        return await read_status(self._handle(), await self._properties())

    async def timeline(self) -> list[tuple[int, LogEntry]]:
        """The entries of the commit log that count, oldest first, with their positions."""
        await self._properties()
        return list((await self._handle().log.refresh()).after(0))

    async def open_instants(self) -> list[Reservation]:
        """The instants that are being written, or that dead writers have left."""
        await self._properties()
        return await open_reservations(self._handle())

    async def markers(self, instant: str) -> list[MarkerName]:
        """The markers of an instant that is being written, or was left unfinished; sorted."""
        loaded = await load_markers(self._backend, marker_folder(instant), concurrency=self._commit.concurrency)
        return sorted(loaded.names)

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

    async def clean(self) -> CleanResult:
        """Put the table in order: as ``rollback()``, and sweep what has been kept for long enough."""
        return await clean(self._handle(), await self._properties())

    def _handle(self) -> TableHandle:
        return TableHandle(self._backend, self._commit, self._lease, self._clock)

    async def _properties(self) -> TableProperties:
        properties = await read_properties(self._backend)
        if properties is None:
            raise UnsupportedTable(f"{self.url} holds no table yet; the first write creates it")
        return properties

    async def _begin(
        self,
        handle: TableHandle,
        properties: TableProperties,
        mode: Mode,
        partition_overwrite: PartitionOverwrite,
        settings: JobSettings,
        background: TaskGroup,
    ) -> WriteJob:
        reservation = await reserve(handle, operation=mode, marker_kind=settings.markers.kind)
        base = WriteBase.of(handle.log.history)
        lease = Lease(self._backend, reservation.instant, handle.log, handle.lease_settings)
        try:
            await lease.beat()
            background.start_soon(lease.keep)
            await self._backend.open_staging(staging_folder(reservation.instant))
            await help_others(handle, properties, own=beat_path(reservation.instant))
            engine = await background.start(_run_engine, self._backend, settings.markers)
            directory = engine.directory(reservation.instant, check_open=lease.check_open)
            address = await _serve(engine, reservation, settings, background)
        except BaseException:
            await _undo_begin(handle, properties, reservation, lease)
            raise
        ticket = WriteTicket(
            url=self.url,
            instant=reservation.instant,
            base=base.position,
            schema=properties.schema,
            partition_by=properties.partition_by,
            staging=staging_folder(reservation.instant),
            marker_kind=settings.markers.kind,
            service=address,
            settings=settings.tasks,
        )
        return WriteJob(
            handle,
            properties,
            reservation,
            base,
            mode=mode,
            partition_overwrite=partition_overwrite,
            directory=directory,
            lease=lease,
            ticket=ticket,
        )


def open_table(
    url: str,
    *,
    backend: Backend | None = None,
    commit: CommitSettings | None = None,
    lease: LeaseSettings | None = None,
    clock: Clock | None = None,
) -> Table:
    """The table at a URL, whether it exists yet or not. No I/O.

    ``backend`` is used instead of ``open_backend(url)`` where it is given.
    """
    return Table(
        backend if backend is not None else open_backend(url),
        commit=commit or CommitSettings(),
        lease=lease or LeaseSettings(),
        clock=clock or SystemClock(),
    )


async def _run_engine(
    backend: Backend, settings: MarkerSettings, *, task_status: anyio.abc.TaskStatus[MarkerEngine]
) -> None:
    async with open_marker_engine(backend, settings) as engine:
        task_status.started(engine)
        await anyio.sleep_forever()


async def _serve(
    engine: MarkerEngine, reservation: Reservation, settings: JobSettings, background: TaskGroup
) -> ServiceAddress | None:
    """Let tasks of other processes ask for markers; where they put their own there is nothing to serve."""
    if settings.markers.kind == "direct":
        return None

    async def create(instant: str, paths: Sequence[str], io: str) -> None:
        await engine.directory(instant).create(*paths, io=io)

    server = MarkerServer(secrets.token_bytes(32), settings.service, create)
    await background.start(server.run)
    return server.address(reservation.instant)


async def _end(job: WriteJob, timeout_s: float) -> None:
    """Whatever happened to the block, the job ends; what cannot be done now is left for the next writer."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(timeout_s) as scope:
        try:
            await job.end()
        except TallymarkError as error:
            logger.warning("instant.unfinished instant=%s error=%s: the next write ends it", job.instant, error)
    if scope.cancelled_caught:
        logger.warning("instant.unfinished instant=%s: no answer for %s s", job.instant, timeout_s)


async def _undo_begin(handle: TableHandle, properties: TableProperties, reservation: Reservation, lease: Lease) -> None:
    with anyio.CancelScope(shield=True), anyio.move_on_after(handle.commit_settings.end_timeout_s):
        try:
            await lease.give_up()
            await roll_back(handle, properties, reservation)
        except TallymarkError as error:
            logger.warning("instant.unfinished instant=%s error=%s", reservation.instant, error)


def _check_modes(mode: str, partition_overwrite: str) -> None:
    if mode not in get_args(Mode):
        raise InvalidRequest(f"mode={mode!r}: say 'append' or 'overwrite'; there is no default")
    if partition_overwrite not in get_args(PartitionOverwrite):
        raise InvalidRequest(f"partition_overwrite={partition_overwrite!r}: say 'static' or 'dynamic'")


def _table_name(url: str) -> str:
    """The last part of the URL, in the characters that Hudi takes for a table's name."""
    return re.sub(r"\W+", "_", url.rstrip("/").rpartition("/")[2], flags=re.ASCII) or "table"
