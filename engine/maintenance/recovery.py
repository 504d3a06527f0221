"""Recovery of instants of dead writers: the committed ones are finished, the others rolled back."""

from collections.abc import Mapping
from contextlib import suppress

import anyio

from tallymark.backends.events import EventLog
from tallymark.engine.errors import CorruptObject
from tallymark.engine.instants.finish import drop_bookkeeping
from tallymark.engine.instants.open_instants import open_reservations
from tallymark.engine.instants.project import project
from tallymark.engine.instants.reserve import is_taken
from tallymark.engine.instants.rollback import Ended, decide, roll_back
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.markers.loading import has_markers
from tallymark.engine.timeline.instant import parse_instant
from tallymark.engine.timeline.lease import heartbeat_path
from tallymark.engine.timeline.log import new_nonce
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.reservation import HEARTBEAT_FOLDER, Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity

_events = EventLog(__name__)

STAMP_S = 1.0
"""By how much an age may seem longer than it is: S3 stamps whole seconds."""

PROBE = "probe-"
"""Prefix of the name of a heartbeat that belongs to no instant."""


async def recover_others(handle: TableHandle, properties: TableProperties, *, own: str) -> list[Ended]:
    """Write missing projections, and end every instant whose writer is dead.

    ``own`` is the path of a heartbeat that this process has just put: the age of other heartbeats is measured from it,
    by the store's clock alone.
    """
    # before the heartbeats: a reserved writer has put its heartbeat before
    reservations = await open_reservations(handle)
    ages = await heartbeat_ages(handle, own)
    history = await handle.log.refresh()
    await project(handle, properties, history.head)
    here = WriterIdentity.here()
    ended = []
    for reservation in reservations:
        if heartbeat_path(reservation.instant) != own and is_dead(reservation, ages, seen_from=here):
            age = ages.get(reservation.instant)
            _events.info("instant.abandoned", instant=reservation.instant, beat_age_s=age)
            ended.append(await end_instant(handle, properties, reservation))
    await _drop_unreserved(handle, properties, ages, {reservation.instant for reservation in reservations})
    return ended


async def recover_listed(handle: TableHandle, properties: TableProperties, *, own: str) -> None:
    """Do the same where the listing by which the log was opened has shown open instants; otherwise list nothing."""
    if handle.log.listed_open:
        await recover_others(handle, properties, own=own)
    else:
        await project(handle, properties, handle.log.history.head)


def is_dead(reservation: Reservation, ages: Mapping[str, float], *, seen_from: WriterIdentity) -> bool:
    """Return whether the writer's process has certainly ended, or its last heartbeat is older than its lease, or
    missing.
    """
    age = ages.get(reservation.instant, float("inf"))
    return reservation.writer.is_gone(seen_from=seen_from) or age > reservation.expiry_s


async def end_instant(handle: TableHandle, properties: TableProperties, reservation: Reservation) -> Ended:
    """Roll back an instant of another writer, dead or alive; or finish it, if it was committed."""
    if await decide(handle, reservation) == "rollback":
        await _until_its_writer_knows(handle, reservation)
    return await roll_back(handle, properties, reservation)


async def _until_its_writer_knows(handle: TableHandle, reservation: Reservation) -> None:
    """Wait until a living writer of the instant can ack no marker without having read the rollback entry.

    It does so for half a lease after a heartbeat, and it may have put one since it was treated as dead. Every heartbeat
    reads the log, so a heartbeat later than the newest one now cannot miss the entry. Where staging is closed before
    the markers are read, or tasks check for the seal themselves, a late ack does no harm.
    """
    is_harmless = handle.backend.has_staging or reservation.marker_kind == "direct"
    if is_harmless or reservation.writer.is_gone(seen_from=WriterIdentity.here()):
        return
    own = await clock_probe(handle)
    try:
        ages = await heartbeat_ages(handle, own)
    finally:
        await handle.backend.delete([own])
    age = ages.get(reservation.instant, float("inf"))
    await anyio.sleep(max(0.0, reservation.expiry_s / 2 + STAMP_S - age))


async def clock_probe(handle: TableHandle) -> str:
    """Put a heartbeat that belongs to no instant, to read the store's clock. The caller deletes it. Returns its
    path.
    """
    path = f"{HEARTBEAT_FOLDER}/{PROBE}{new_nonce()}"
    await handle.backend.put(path, b"")
    return path


async def heartbeat_ages(handle: TableHandle, own: str) -> dict[str, float]:
    """Return the seconds since the last heartbeat of each instant, measured from the caller's own fresh one."""
    heartbeats = await _heartbeats(handle)
    now = _now(heartbeats, own)
    return {path.rpartition("/")[2]: now - modified for path, modified in heartbeats.items() if path != own}


async def _heartbeats(handle: TableHandle) -> dict[str, float]:
    return {entry.path: entry.modified async for entry in handle.backend.list(HEARTBEAT_FOLDER)}


def _now(heartbeats: dict[str, float], own: str) -> float:
    return heartbeats.get(own, max(heartbeats.values(), default=0.0))


async def _drop_unreserved(
    handle: TableHandle, properties: TableProperties, ages: dict[str, float], reserved: set[str]
) -> None:
    """Delete the heartbeat of a writer that died before it had an instant. It has no data."""
    for name in [name for name, age in ages.items() if age > handle.lease_settings.expiry_s and name not in reserved]:
        if name.startswith(PROBE):
            await handle.backend.delete([heartbeat_path(name)])
        else:
            await end_unreserved(handle, properties, name)


async def end_unreserved(handle: TableHandle, properties: TableProperties, instant: str) -> None:
    """Drop what is stored under an instant that no writer has reserved, and whose writer counts as dead.

    A writer has its reservation before its first marker. Where there are markers, the reservation was lost, and the
    instant is rolled back.

    The instant is reserved first: if its writer lives after all, it finds the reservation and takes another instant.
    The log passes the instant before the reservation is deleted: a delete that arrives late then cannot remove another
    writer's reservation of it.
    """
    reservation = Reservation(
        instant=instant,
        nonce=new_nonce(),
        writer=WriterIdentity.here(),
        marker_kind="batched",
        operation="clean",
        expiry_s=handle.lease_settings.expiry_s,
    )
    if await is_taken(handle, reservation):
        if await has_markers(handle.backend, instant):
            await end_instant(handle, properties, reservation)
            return
        if _may_be_reserved(handle, instant):
            await decide(handle, reservation)
        await drop_bookkeeping(handle, instant)


def _may_be_reserved(handle: TableHandle, instant: str) -> bool:
    """Return False if it is not an instant, or if a writer that reserves it now is sure to find that the log has passed
    it.
    """
    with suppress(CorruptObject):
        return parse_instant(instant) > parse_instant(handle.log.history.reached_instant)
    return False
