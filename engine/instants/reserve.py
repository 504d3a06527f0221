"""Reservation of an instant: unique, and visible to other writers before any data is written."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from tallymark.backends.concurrently import concurrently
from tallymark.backends.errors import AlreadyExists, NotFound
from tallymark.engine.instants.finish import drop_bookkeeping
from tallymark.engine.instants.registration import give_back, is_passed, take
from tallymark.engine.instants.rollback import decide
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.markers.segment import BATCHED_TYPE, DIRECT_TYPE, TYPE_FILE, marker_folder
from tallymark.engine.settings import MarkerKind
from tallymark.engine.timeline.instant import FLOOR, instant_time
from tallymark.engine.timeline.lease import Lease
from tallymark.engine.timeline.log import new_nonce
from tallymark.engine.timeline.reservation import Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity

_TYPES = {"batched": BATCHED_TYPE, "direct": DIRECT_TYPE}


async def reserve(handle: TableHandle, *, operation: str, marker_kind: MarkerKind) -> tuple[Reservation, Lease]:
    """Reserve an instant later than every instant in the log; on return the log's history is as of then.

    The lease runs from the one heartbeat that was put: a second one at once exceeds what GCS accepts for one object.

    A number is taken first, by which other writers find this one. The heartbeat is put before the reservation, so that
    no process sees a reserved instant without a heartbeat; and the reservation before the last read of the log, so that
    an instant, or a number, that the log has passed is noticed.
    """
    newest = FLOOR
    while True:
        newest = max(newest, (await handle.log.refresh()).reached_instant)
        draft = Reservation(
            instant=instant_time(handle.clock.now(), after=newest),
            nonce=new_nonce(),
            writer=WriterIdentity.here(),
            marker_kind=marker_kind,
            operation=operation,
            expiry_s=handle.lease_settings.expiry_s,
            base=handle.log.history.head,
        )
        reservation = await take(handle, draft)
        lease = await _sign_of_life(handle, reservation)
        newest = reservation.instant
        if not await is_taken(handle, reservation):
            await give_back(handle, reservation)
            continue
        history = await handle.log.refresh(verify=True)
        if history.reached_instant < reservation.instant and not is_passed(history, reservation):
            return reservation, lease
        await _undo(handle, reservation)


async def _sign_of_life(handle: TableHandle, reservation: Reservation) -> Lease:
    """Put the first heartbeat of its lease, and the type of its markers. Return the lease."""
    lease = Lease(handle.backend, reservation.instant, handle.log, handle.lease_settings)

    async def announce() -> None:
        await handle.backend.put(_type_path(reservation.instant), _TYPES[reservation.marker_kind])

    await concurrently(_call, (lease.begin, announce), limit=2)
    return lease


async def _call(act: Callable[[], Awaitable[None]]) -> None:
    await act()


async def _undo(handle: TableHandle, reservation: Reservation) -> None:
    """Undo a reservation under which nothing was written.

    The log passes the instant first: otherwise another writer could reserve it during these deletes, and lose it by
    them. The reservation is deleted next: without its heartbeat it would count as abandoned.
    """
    if handle.log.history.reached_instant < reservation.instant:
        await decide(handle, reservation)
    await handle.backend.delete([reservation.path])
    await drop_bookkeeping(handle, reservation.instant, objects=[_type_path(reservation.instant)])
    await give_back(handle, reservation)


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
