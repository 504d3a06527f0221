"""Begin a write: get an instant that nobody else has, and leave a sign of life before any data."""

from tallymark.backends.errors import AlreadyExists
from tallymark.engine.markers.segment import BATCHED_TYPE, TYPE_FILE, marker_folder
from tallymark.engine.settings import MarkerKind
from tallymark.engine.timeline.instant import FLOOR, instant_time
from tallymark.engine.timeline.lease import beat_path
from tallymark.engine.timeline.log import new_nonce
from tallymark.engine.timeline.reservation import Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tallymark.engine.writes.finish import drop_bookkeeping
from tallymark.engine.writes.handle import TableHandle


async def reserve(handle: TableHandle, *, operation: str, marker_kind: MarkerKind) -> Reservation:
    """Reserve an instant later than every instant in the log; on return the log's history is as of then.

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
        )
        await handle.backend.put(beat_path(instant), b"")
        if marker_kind == "batched":
            await handle.backend.put(f"{marker_folder(instant)}/{TYPE_FILE}", BATCHED_TYPE)
        if not await _is_ours(handle, reservation):
            newest = max(newest, instant)  # its winner beats and marks under the same names: leave them
            continue
        history = await handle.log.refresh()
        if history.newest_instant is None or history.newest_instant < instant:
            return reservation
        await drop_bookkeeping(handle, instant)
        newest = history.newest_instant


async def _is_ours(handle: TableHandle, reservation: Reservation) -> bool:
    try:
        await handle.backend.put_new(reservation.path, reservation.encode())
    except AlreadyExists:
        return await handle.backend.get(reservation.path) == reservation.encode()
    return True
