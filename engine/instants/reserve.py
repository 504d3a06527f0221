"""Reservation of an instant: unique, and visible to other writers before any data is written."""

from contextlib import suppress

from tallymark.backends.concurrently import at_once
from tallymark.backends.errors import AlreadyExists, NotFound
from tallymark.engine.instants.finish import drop_bookkeeping
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.markers.segment import BATCHED_TYPE, DIRECT_TYPE, TYPE_FILE, marker_folder
from tallymark.engine.settings import MarkerKind
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.instant import FLOOR, instant_time
from tallymark.engine.timeline.lease import Lease, heartbeat_path
from tallymark.engine.timeline.log import new_nonce
from tallymark.engine.timeline.reservation import Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity

_TYPES = {"batched": BATCHED_TYPE, "direct": DIRECT_TYPE}


async def reserve(handle: TableHandle, *, operation: str, marker_kind: MarkerKind) -> tuple[Reservation, Lease]:
    """Reserve an instant later than every instant in the log; on return the log's history is as of then.

    The lease runs from the one heartbeat that was put: a second one at once exceeds what GCS accepts for one object.

    The heartbeat is put before the reservation, so that no process sees a reserved instant without a heartbeat; and the
    reservation before the last read of the log, so that an instant that the log has passed is noticed. It is later than
    those of the open instants that were listed: a heartbeat under one of them would keep a dead writer alive.
    """
    history = await handle.log.refresh()
    handle.log.check_writable()
    newest = max((FLOOR, *handle.log.listed_open))
    while True:
        newest = max(newest, history.reached_instant)
        reservation = Reservation(
            instant=instant_time(handle.clock.now(), after=newest),
            nonce=new_nonce(),
            writer=WriterIdentity.here(),
            marker_kind=marker_kind,
            operation=operation,
            expiry_s=handle.lease_settings.expiry_s,
            base=handle.checkpoints.statistics.position,
        )
        newest = reservation.instant
        lease = Lease(handle.backend, reservation.instant, handle.log, handle.lease_settings)
        await lease.begin()
        is_mine = await is_taken(handle, reservation)
        history = await _read_log(handle, reservation if is_mine else None)
        if is_mine and history.reached_instant < reservation.instant:
            return reservation, lease
        if is_mine:
            await _undo(handle, reservation)
        elif (decided := history.decided(reservation.instant)) is not None and decided.kind != "rollback":
            # Its writer may have deleted its own before this one arrived. One that another rolls back may still ack,
            # and the other goes by its heartbeat.
            await handle.backend.delete([heartbeat_path(reservation.instant)])


async def _read_log(handle: TableHandle, reservation: Reservation | None) -> History:
    """Read the log to its end and return its history; at the same time put the type of the reservation's markers."""

    async def read() -> None:
        await handle.log.refresh(verify=True)

    async def put_type() -> None:
        if reservation is not None:
            await handle.backend.put(_type_path(reservation.instant), _TYPES[reservation.marker_kind])

    await at_once(read, put_type)
    return handle.log.history


async def _undo(handle: TableHandle, reservation: Reservation) -> None:
    """Undo a reservation under which nothing was written, and which the log has passed: no other writer keeps it.

    The reservation is deleted first: without its heartbeat it would count as abandoned.
    """
    await handle.backend.delete([reservation.path])
    await drop_bookkeeping(handle, reservation.instant, objects=[_type_path(reservation.instant)])


def _type_path(instant: str) -> str:
    return f"{marker_folder(instant)}/{TYPE_FILE}"


async def is_taken(handle: TableHandle, reservation: Reservation) -> bool:
    """Put the reservation unless its instant has one. Return whether this reservation is the one that is stored."""
    try:
        await handle.backend.put_new(reservation.path, reservation.encode())
    except AlreadyExists:
        with suppress(NotFound):  # its winner has finished since
            return await handle.backend.get(reservation.path) == reservation.encode()
        return False
    return True
