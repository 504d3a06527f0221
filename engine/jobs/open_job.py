"""Life of a write job: started with its lease, its marker engine and its service, and ended in every case."""

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

import anyio
from anyio.abc import TaskGroup

from tallymark.backends.contract import Backend
from tallymark.backends.events import EventLog
from tallymark.engine.background import background_tasks
from tallymark.engine.errors import Sealed, ServiceUnavailable, TallymarkError
from tallymark.engine.instants.finish import staging_folder
from tallymark.engine.instants.reserve import confirm, passed, reserve_next
from tallymark.engine.instants.rollback import roll_back
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.base import WriteBase
from tallymark.engine.jobs.request import WriteRequest
from tallymark.engine.jobs.target import WriteTarget
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.lazy import Lazy
from tallymark.engine.lookups.served_view import ServedView
from tallymark.engine.maintenance.checkpoint import checkpoint_due
from tallymark.engine.maintenance.expire import expire_due
from tallymark.engine.maintenance.recovery import recover_due, recover_listed
from tallymark.engine.markers.engine import MarkerEngine, open_marker_engine
from tallymark.engine.metrics.registry import PROCESS, JobMeter
from tallymark.engine.rpc.commit_broker import CommitBroker
from tallymark.engine.rpc.dispatcher import BlockOf, MarkerHandler
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.rpc.server import JobServer
from tallymark.engine.rpc.shared_service import shared_address
from tallymark.engine.setting_checks import check_settings
from tallymark.engine.settings import (
    MarkerSettings,
    ServiceSettings,
    SharedServiceSettings,
    SizingSettings,
    TaskSettings,
)
from tallymark.engine.tasks.file_name import check_is_file_of
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.lease import Lease
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.reservation import Reservation

_events = EventLog(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """How a write is carried out, beside what its ``WriteRequest`` does to the table."""

    markers: MarkerSettings
    tasks: TaskSettings
    service: ServiceSettings | SharedServiceSettings
    sizing: SizingSettings

    def __post_init__(self) -> None:
        check_settings("markers", self.markers, MarkerSettings)
        check_settings("tasks", self.tasks, TaskSettings)
        if not isinstance(self.service, SharedServiceSettings):
            check_settings("service", self.service, ServiceSettings)
        check_settings("sizing", self.sizing, SizingSettings)


@asynccontextmanager
async def open_job(
    handle: TableHandle, properties: TableProperties, request: WriteRequest, options: JobOptions
) -> AsyncIterator[WriteJob]:
    """Yield a job for the block, after recovery of the instants of dead writers."""
    flushing = anyio.CancelScope(shield=True)  # whatever cancels the block, the job's end waits for flushes in flight
    meter = JobMeter(request.mode)
    with PROCESS.running(meter, handle.backend):
        async with background_tasks() as background:
            try:
                job = await _start(handle, properties, request, options, background, flushing, meter)
                try:
                    with job.serving_threads(background):
                        yield job
                finally:
                    await _end(job, handle, properties)
            finally:
                flushing.cancel()


async def _start(
    handle: TableHandle,
    properties: TableProperties,
    request: WriteRequest,
    options: JobOptions,
    background: TaskGroup,
    flushing: anyio.CancelScope,
    meter: JobMeter,
) -> WriteJob:
    backend = handle.backend
    kind = options.markers.kind
    reservation, lease = await reserve_next(handle, operation=request.mode, marker_kind=kind)
    confirmed = Lazy(partial(confirm, handle, reservation))
    base_position = handle.base = handle.log.history.head
    base_hash = handle.log.history.hash_at(base_position)
    target = WriteTarget.of(request, properties)
    try:
        view = partial(handle.view, properties)
        base = WriteBase.of(handle.log, request.base, view if target.is_overwrite else None)
        background.start_soon(lease.keep)
        await handle.preload(properties)
        if kind == "batched" and not backend.has_staging and not isinstance(options.service, SharedServiceSettings):
            background.start_soon(_ahead, confirmed)  # beside the first markers, whose acks wait for it
        elif not await confirmed.get():
            raise passed(reservation.instant)
        await backend.open_staging(staging_folder(reservation.instant))
        if backend.has_staging:
            await lease.check_log()  # a rollback from before has closed what is open now
        await recover_listed(handle, properties, own=reservation.path)
        engine = await _start_engine(backend, options.markers, background, flushing)

        async def check_open() -> None:
            if not await confirmed.get():
                raise passed(reservation.instant)
            await lease.check_open()

        directory = engine.directory(
            reservation.instant,
            check_open=check_open,
            check_path=partial(check_is_file_of, reservation.instant),
            is_new=True,
        )
        served = ServedView(handle.log, partial(handle.view, properties)) if handle.view_settings.serve else None
        address = await _serve(_JobHandler(engine, served, meter), reservation, options, background, backend.url)
    except BaseException:
        await _undo_start(handle, properties, reservation, lease)
        raise
    _events.info(
        "instant.begun",
        instant=reservation.instant,
        url=backend.url,
        operation=reservation.operation,
        base=base.position,
        markers=options.markers.kind,
        sizing=options.sizing.policy if options.sizing.is_on else None,
    )
    return WriteJob(
        handle,
        properties,
        reservation,
        base,
        request=request,
        directory=directory,
        lease=lease,
        confirmed=confirmed,
        meter=meter,
        ticket=WriteTicket(
            url=backend.url,
            options=handle.storage,
            instant=reservation.instant,
            base=base_position,
            schema=properties.schema,
            partition_by=properties.partition_by,
            key=properties.key,
            staging=staging_folder(reservation.instant),
            marker_kind=options.markers.kind,
            service=address,
            settings=options.tasks,
            max_file_bytes=options.sizing.max_file_bytes,
            partition=target.partition,
            guard=target.guard,
            where=request.where,
            table=properties.id,
            base_hash=base_hash,
            views=handle.view_settings,
        ),
        sizing=options.sizing,
        broker=None if address is None else _broker_of(handle, options.service),
    )


def _broker_of(handle: TableHandle, service: ServiceSettings | SharedServiceSettings) -> CommitBroker | None:
    """Return what decides the job's commit outside of this process; None where this process does."""
    if not isinstance(service, SharedServiceSettings) or not service.commits:
        return None
    memory = handle.memory
    if memory.broker is None or memory.broker.settings != service:
        memory.broker = CommitBroker(service, handle.backend.url)
    return memory.broker


async def _ahead(confirmed: Lazy[bool]) -> None:
    """Confirm the reservation before it is needed. After an error it is tried again when it is needed."""
    with suppress(TallymarkError):
        await confirmed.get()


async def _start_engine(
    backend: Backend, settings: MarkerSettings, background: TaskGroup, scope: anyio.CancelScope
) -> MarkerEngine:
    """Start a marker engine that runs until the scope is cancelled, which shields it from other cancellations.

    Not by ``background.start``, which after a cancellation may wait for the end of the task it has started.
    """
    started: list[MarkerEngine] = []
    has_started = anyio.Event()

    async def run() -> None:
        with scope:
            async with open_marker_engine(backend, settings) as engine:
                started.append(engine)
                has_started.set()
                await anyio.sleep_forever()

    background.start_soon(run)
    await has_started.wait()
    return started[0]


class _JobHandler(MarkerHandler):
    """The service of one job: its markers, and the blocks of its table's view."""

    def __init__(self, engine: MarkerEngine, served: ServedView | None, meter: JobMeter) -> None:
        """Set ``served`` to None where tasks read the log themselves (ViewSettings.serve)."""
        super().__init__(engine)
        self._served = served
        self._meter = meter

    def cached_blocks(
        self, job: str, position: int, log_hash: str, partitions: Sequence[str]
    ) -> Sequence[bytes] | None:
        blocks = self._served.cached_blocks(position, log_hash, partitions) if self._served is not None else None
        if blocks is not None:
            self._meter.count_look_up()
        return blocks

    async def look_up(self, job: str, position: int, log_hash: str) -> BlockOf:
        if self._served is None:
            return await super().look_up(job, position, log_hash)
        self._meter.count_look_up()
        return await self._served.look_up(position, log_hash)


async def _serve(
    handler: _JobHandler, reservation: Reservation, options: JobOptions, background: TaskGroup, url: str
) -> ServiceAddress | None:
    """Return the address of the job's service, which is started unless it runs outside of this process; None where
    tasks put direct markers.
    """
    if options.markers.kind == "direct":
        return None
    if isinstance(options.service, SharedServiceSettings):
        return await _shared(options.service, url, reservation.instant, fallback=options.tasks.fallback)
    ended = Sealed(f"the job of instant {reservation.instant} has ended; files written from now on are not committed")
    server = JobServer(secrets.token_bytes(32), options.service, handler, shutdown_error=ended)
    await background.start(server.run)
    return server.address(reservation.instant)


async def _shared(service: SharedServiceSettings, url: str, instant: str, *, fallback: bool) -> ServiceAddress | None:
    try:
        return await shared_address(service, url, instant)
    except ServiceUnavailable as error:
        if not fallback:
            raise
        _events.warning("markers.fallback", instant=instant, reason=error)
        return None


async def _end(job: WriteJob, handle: TableHandle, properties: TableProperties) -> None:
    """End the job, whatever happened to the block. Steps that fail are left to the next writer."""
    timeout_s = handle.commit_settings.end_timeout_s
    with anyio.CancelScope(shield=True), anyio.move_on_after(timeout_s) as scope:
        try:
            await job.end()
            if handle.log.is_replaced:
                return  # the log there is another one, and so are its timeline and its checkpoints
            if not handle.memory.maintaining.locked():
                async with handle.memory.maintaining:
                    await _clean(handle, properties)
                    await checkpoint_due(handle, properties)
                    await recover_due(handle, properties)
        except TallymarkError as error:
            _events.warning("instant.unfinished", instant=job.instant, reason=error)
    if scope.cancelled_caught:
        _events.warning("instant.unfinished", instant=job.instant, reason=f"no answer for {timeout_s:g} s")


async def _clean(handle: TableHandle, properties: TableProperties) -> None:
    """Delete files that are due, when the write has done everything else; after an error the next write does it."""
    try:
        await expire_due(handle, properties)
    except TallymarkError as error:
        _events.warning("clean.postponed", url=handle.backend.url, reason=error)


async def _undo_start(handle: TableHandle, properties: TableProperties, reservation: Reservation, lease: Lease) -> None:
    with anyio.CancelScope(shield=True), anyio.move_on_after(handle.commit_settings.end_timeout_s):
        try:
            await lease.give_up()
            await roll_back(handle, properties, reservation, is_own=True)
        except TallymarkError as error:
            _events.warning("instant.unfinished", instant=reservation.instant, reason=error)
