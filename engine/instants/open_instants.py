"""Open instants: those whose reservation exists, found by one LIST of the bookkeeping.

A reservation whose put has returned is in every listing that starts later. So the first write that begins after the
lease of a dead writer is over finds it in the listing by which it opens the log (``CommitLog.listed_open``), before it
reserves its own instant: each write opens the log by a handle of its own. Nothing else depends on seeing other writers:
the log decides between them.
"""

from contextlib import suppress

from tallymark.backends.concurrently import concurrently
from tallymark.backends.errors import NotFound
from tallymark.backends.events import EventLog
from tallymark.engine.errors import CorruptObject
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.timeline.instant import parse_instant
from tallymark.engine.timeline.reservation import OPEN_FOLDER, UNKNOWN_OPERATION, Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity

_events = EventLog(__name__)


async def open_reservations(handle: TableHandle) -> list[Reservation]:
    """Return every instant that is being written, or was left unfinished, oldest first."""
    found: dict[str, Reservation] = {}

    async def read(path: str) -> None:
        with suppress(NotFound):  # finished since
            found[path] = await read_reservation(handle, path)

    paths = [entry.path async for entry in handle.backend.list(OPEN_FOLDER)]
    await concurrently(read, paths, limit=handle.commit_settings.concurrency)
    return [found[path] for path in sorted(found)]


async def read_reservation(handle: TableHandle, path: str) -> Reservation:
    """Return the reservation of an instant.

    The writer of a damaged one is unknown, and its lease alone decides whether it is dead.

    Raises:
        NotFound: the instant is not reserved, or no longer.
        CorruptObject: the name of the object is not an instant.
    """
    instant = path.rpartition("/")[2]
    data = await handle.backend.get(path)
    try:
        found = Reservation.decode(data, source=path)
        if found.instant != instant:
            raise CorruptObject(f"{path} has the content of instant {found.instant}")
    except CorruptObject as error:
        _events.warning("reservation.damaged", path=path, reason=error)
        parse_instant(instant)
        return Reservation(
            instant=instant,
            nonce="",
            writer=WriterIdentity(host="unknown", boot_id=None, pid_namespace=None, pid=1, started=None),
            marker_kind="batched",
            operation=UNKNOWN_OPERATION,
            expiry_s=handle.lease_settings.expiry_s,
        )
    return found
