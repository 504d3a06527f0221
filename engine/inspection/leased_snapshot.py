"""Snapshots under a reader's lease: the files remain until the block ends.

Why no clean deletes a file of the snapshot. A reader at position P puts its lease, *then* reads the log to its head H.
A clean reserves its instant, reads the log, *then* lists the leases, and wins an entry whose horizon is at most the
position of any living lease. Only such an entry expires files: those replaced up to its horizon. So a file of P is in
danger only from an entry with a horizon h > P, and its clean had read entry h before it listed the leases.

* Nothing of P was replaced by H (for instance at the head). Then h > H: entry h was won after our reading had reached
  the end of the log, and that clean listed leases after it. Ours existed.
* Something was (an older position). Then the clean may have listed before our lease existed, and may win its entry
  after our check. But by then it had reserved its instant. So we list the reservations after the lease is put. We wait
  for each clean whose reservation we find, until it is decided or gone; one that had finished by then had its entry in
  the log before; a later one lists leases after we put ours. Then the log is read, and the horizon checked.

Both readings after the lease was put check that the log continues what was read before. If the process was stopped in
between, the next entry may be archived: it is missing, and that is not the end of the log.

This holds while the lease is renewed in time. If a reader pauses for longer than its lease, files may be deleted: its
scan fails, as without a lease, and leaves no rows out.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from tallymark.backends.errors import BackendError, NotFound
from tallymark.backends.events import EventLog
from tallymark.engine.background import background_tasks
from tallymark.engine.errors import InvalidRequest, TryAgain
from tallymark.engine.inspection.as_of import AsOf, check_retained, position_as_of
from tallymark.engine.inspection.snapshot import Snapshot
from tallymark.engine.instants.open_instants import open_reservations, read_reservation
from tallymark.engine.instants.rollback import decide
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.maintenance.recovery import clock_probe, heartbeat_ages, is_dead
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.reader_lease import ReaderLease
from tallymark.engine.timeline.reservation import UNKNOWN_OPERATION, Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity

_events = EventLog(__name__)


@asynccontextmanager
async def lease_snapshot(
    handle: TableHandle, properties: TableProperties, as_of: AsOf | None
) -> AsyncIterator[Snapshot]:
    """Yield the snapshot as of now, or ``as_of``; its files remain for the block.

    Raises:
        InvalidRequest: the table keeps no replaced files; or ``as_of`` names no state of the table, or its files are
            no longer retained.
        TryAgain: a clean is being decided, and storage has given no clear outcome for long.
    """
    _check_keeps(properties)
    position = await _position(handle, properties, as_of)
    lease = ReaderLease(handle.backend, handle.lease_settings)
    async with background_tasks() as background:
        try:
            await lease.begin(position)
            background.start_soon(lease.keep)
            position = await _held(handle, properties, lease, position, as_of)
            yield await Snapshot.of(handle, properties, position)
        finally:
            await _give_up(handle, lease)


def _check_keeps(properties: TableProperties) -> None:
    if properties.readers == "directory":
        raise InvalidRequest(
            "a table with readers='directory' deletes replaced files right after the commit, so that no lease can hold "
            "them; read it without one, or make a table with readers='table'"
        )


async def _position(handle: TableHandle, properties: TableProperties, as_of: AsOf | None) -> int:
    """Return the lease's first position: the head before the lease is put, or that of ``as_of``."""
    if as_of is not None:
        return await position_as_of(handle, properties, as_of)
    return (await handle.log.refresh()).head


async def _held(
    handle: TableHandle, properties: TableProperties, lease: ReaderLease, position: int, as_of: AsOf | None
) -> int:
    """Return the position whose files remain from now on. The lease has been put."""
    history = await handle.log.refresh(verify=True)
    if as_of is None:
        lease.move_to(history.head)
        return history.head
    if history.replacing(range(position + 1, history.head + 1)):
        await _until_cleans_are_decided(handle)
        await check_retained(handle, properties, position, as_of)
    return position


async def _until_cleans_are_decided(handle: TableHandle) -> None:
    """Wait until each clean that was open at the call is decided or has given up its instant; on return the log was
    read after that. Cleans of dead writers are decided here, by a rollback entry, and nothing else is changed.
    """
    found = [each for each in await open_reservations(handle) if each.operation in ("clean", UNKNOWN_OPERATION)]
    patience_s = handle.lease_settings.expiry_s + handle.commit_settings.decision_timeout_s
    with anyio.move_on_after(patience_s):
        while found := await _undecided(handle, found):
            await _decide_dead(handle, found)
            await anyio.sleep(handle.commit_settings.retry_pause_s)
        return
    raise TryAgain(
        f"the clean of instant {found[0].instant} has been undecided for {patience_s:g} s, and may let go what is to "
        "be read; read again, or ask 'tallymark status' who it is"
    )


async def _undecided(handle: TableHandle, cleans: list[Reservation]) -> list[Reservation]:
    """Return those that are still open, read before the log, and are not in it."""
    still_open = [clean for clean in cleans if await _stands(handle, clean)]
    history = await handle.log.refresh(verify=True)
    return [clean for clean in still_open if history.decided(clean.instant) is None]


async def _stands(handle: TableHandle, reservation: Reservation) -> bool:
    try:
        return await read_reservation(handle, reservation.path) == reservation
    except NotFound:
        return False


async def _decide_dead(handle: TableHandle, cleans: list[Reservation]) -> None:
    own = await clock_probe(handle)
    try:
        ages = await heartbeat_ages(handle, own)
    finally:
        await handle.backend.delete([own])
    here = WriterIdentity.here()
    for clean in cleans:
        if is_dead(clean, ages, seen_from=here):
            await decide(handle, clean)


async def _give_up(handle: TableHandle, lease: ReaderLease) -> None:
    """End the lease, whatever happened to the block. One that cannot be deleted now expires, and is deleted by
    a clean.
    """
    timeout_s = handle.lease_settings.expiry_s / 4
    with anyio.CancelScope(shield=True), anyio.move_on_after(timeout_s) as scope:
        try:
            await lease.give_up()
        except BackendError as error:
            _events.warning("lease.left", reason=error)
    if scope.cancelled_caught:
        _events.warning("lease.left", reason=f"no answer for {timeout_s:g} s")
