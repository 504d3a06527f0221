"""Begin a write: get an instant that nobody else has, and leave a sign of life before any data."""

from contextlib import suppress

from tallymark.backends.errors import AlreadyExists, NotFound
from tallymark.engine.markers.segment import BATCHED_TYPE, DIRECT_TYPE, TYPE_FILE, marker_folder
from tallymark.engine.settings import MarkerKind
from tallymark.engine.timeline.instant import FLOOR, instant_time
from tallymark.engine.timeline.lease import Lease
from tallymark.engine.timeline.log import new_nonce
from tallymark.engine.timeline.reservation import Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tallymark.engine.writes.finish import drop_bookkeeping
from tallymark.engine.writes.handle import TableHandle

_TYPES = {"batched": BATCHED_TYPE, "direct": DIRECT_TYPE}


async def reserve(handle: TableHandle, *, operation: str, marker_kind: MarkerKind) -> tuple[Reservation, Lease]:
    """Reserve an instant later than every instant in the log; on return the log's history is as of then.

    The lease runs since the one beat that was put: a second one at once is more than GCS takes of one object.

    The beat comes before the reservation, so that nobody sees a reserved instant without a sign of life, and the
    reservation before the reading of the log, so that an instant that is in the log already is noticed.
    """
    newest = FLOOR
    while True:
        instant = instant_time(handle.clock.now(), after=newest)
        reservation = Reservation(
            instant=instant,
            nonce=new_nonce(),
            writer=WriterIdentity.here(),
            marker_kind=marker_kind,
            operation=operation,
            expiry_s=handle.lease_settings.expiry_s,
        )
        lease = Lease(handle.backend, instant, handle.log, handle.lease_settings)
        await lease.begin()
        await handle.backend.put(f"{marker_folder(instant)}/{TYPE_FILE}", _TYPES[marker_kind])
        if not await is_taken(handle, reservation):
            newest = max(newest, instant)  # its winner beats and marks under the same names: leave them
            continue
        history = await handle.log.refresh()
        if history.newest_instant is None or history.newest_instant < instant:
            return reservation, lease
        # Nothing was written under it. The reservation goes first: without its beat it would pass for abandoned.
        await handle.backend.delete([reservation.path])
        await drop_bookkeeping(handle, instant)
        newest = history.newest_instant


async def is_taken(handle: TableHandle, reservation: Reservation) -> bool:
    """Put the reservation unless its instant has one; True if it stands."""
    try:
        await handle.backend.put_new(reservation.path, reservation.encode())
    except AlreadyExists:
        with suppress(NotFound):  # its winner has finished meanwhile
            return await handle.backend.get(reservation.path) == reservation.encode()
        return False
    return True
