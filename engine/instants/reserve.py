"""Reservation of an instant: unique, and visible to other writers before any data is written."""

from contextlib import suppress

from tallymark.backends.concurrently import at_once
from tallymark.backends.errors import AlreadyExists, NotFound
from tallymark.engine.errors import RolledBack
from tallymark.engine.instants.finish import drop_bookkeeping
from tallymark.engine.instants.rollback import decide
from tallymark.engine.instants.table_handle import TableChanged, TableHandle
from tallymark.engine.markers.segment import BATCHED_TYPE, DIRECT_TYPE, TYPE_FILE, marker_folder
from tallymark.engine.settings import MarkerKind
from tallymark.engine.timeline.instant import FLOOR, instant_time
from tallymark.engine.timeline.lease import Lease
from tallymark.engine.timeline.log import new_nonce
from tallymark.engine.timeline.reservation import Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity

_TYPES = {"batched": BATCHED_TYPE, "direct": DIRECT_TYPE}


async def reserve(handle: TableHandle, *, operation: str, marker_kind: MarkerKind) -> tuple[Reservation, Lease]:
    """Reserve an instant that the log has not passed; on return the log's history is as of then, or later."""
    while True:
        reservation, lease = await reserve_next(handle, operation=operation, marker_kind=marker_kind)
        if await confirm(handle, reservation):
            return reservation, lease


async def reserve_next(handle: TableHandle, *, operation: str, marker_kind: MarkerKind) -> tuple[Reservation, Lease]:
    """Reserve an instant later than those that the log has decided, which is read at the same time.

    Nothing may be written under it before ``confirm``. The lease starts with the reservation, which is its first
    heartbeat: a second put at once would cost a request.

    Raises TableChanged, where the handle's memory is of another table, or of none.
    """
    newest = max((FLOOR, *handle.log.listed_open))
    history = handle.log.history if handle.log.is_open else await handle.log.refresh()
    handle.log.check_writable()
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
        lease.begin()
        is_mine = False

        async def put(reservation: Reservation = reservation) -> None:
            nonlocal is_mine
            is_mine = await is_taken(handle, reservation)

        try:
            await at_once(put, handle.log.refresh, handle.memory.check)
        except TableChanged:
            if is_mine:
                await handle.backend.delete([reservation.path])
            raise
        history = handle.log.history
        if is_mine and history.accepts(reservation.instant):
            return reservation, lease
        if is_mine:
            await _undo(handle, reservation)


async def confirm(handle: TableHandle, reservation: Reservation) -> bool:
    """Read the log after the reservation was put, and put the type of its markers at the same time. Return False if
    the log has passed the instant: then the reservation is deleted.

    Only then is it certain that no other writer has used the instant, and finished, before it was reserved: that
    writer's entry was in the log before its reservation was deleted. And an instant that the history accepts is later
    than what any archive treats as over.
    """

    async def put_type() -> None:
        await handle.backend.put(_type_path(reservation.instant), _TYPES[reservation.marker_kind])

    await at_once(handle.log.refresh, put_type)
    if handle.log.history.accepts(reservation.instant):
        return True
    await _undo(handle, reservation)
    return False


def passed(instant: str) -> RolledBack:
    return RolledBack(
        f"instant {instant} was passed by the log while it was reserved: the clock of another writer is ahead of this "
        "one's; write again"
    )


async def _undo(handle: TableHandle, reservation: Reservation) -> None:
    """Undo a reservation under which nothing was written.

    The log passes the instant first: a delete that arrives late then cannot remove another writer's reservation of it.
    """
    if not handle.log.history.has_passed(reservation.instant):
        await decide(handle, reservation)
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
