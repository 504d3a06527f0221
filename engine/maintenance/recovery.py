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
from tallymark.engine.timeline.reservation import HEARTBEAT_FOLDER, OPEN_FOLDER, Reservation
from tallymark.engine.timeline.seal import SEAL_FOLDER
from tallymark.engine.timeline.writer_identity import WriterIdentity

_events = EventLog(__name__)

STAMP_S = 1.0
"""By how much an age may seem longer than it is: S3 stamps whole seconds."""

MARKER_FOLDERS = ".hoodie/.temp"
"""Parent of the folders that ``marker_folder`` returns."""

PROBE = "probe-"
"""Prefix of the name of a heartbeat that belongs to no instant."""


async def recover_others(handle: TableHandle, properties: TableProperties, *, own: str) -> list[Ended]:
    """Write missing projections, and end every instant whose writer is dead.

    ``own`` is the path of a heartbeat or reservation that this process has just put: the age of others is measured from
    it, by the store's clock alone.
    """
    reservations = await open_reservations(handle)
    now, ages = await read_ages(handle, own)
    history = await handle.log.refresh()
    await project(handle, properties, history.head)
    here = WriterIdentity.here()
    ended = []
    for reservation in reservations:
        if reservation.path != own and is_dead(reservation, ages, seen_from=here):
            age = ages.get(reservation.instant)
            _events.info("instant.abandoned", instant=reservation.instant, beat_age_s=age)
            ended.append(await end_instant(handle, properties, reservation))
    await drop_late(handle, properties, now=now)
    return ended


async def recover_listed(handle: TableHandle, properties: TableProperties, *, own: str) -> None:
    """Do the same where the listing by which the log was opened has shown open instants; otherwise list nothing."""
    if handle.log.listed_open:
        handle.log.listed_open = frozenset()
        await recover_others(handle, properties, own=own)


async def recover_due(handle: TableHandle, properties: TableProperties) -> None:
    """Do the same where open instants were last listed more than a lease ago: a writer may have died since."""
    now = anyio.current_time()
    if now - handle.log.listed_at < handle.lease_settings.expiry_s:
        return
    handle.log.listed_at = now
    if await open_reservations(handle):
        await end_abandoned(handle, properties)


async def end_abandoned(handle: TableHandle, properties: TableProperties) -> tuple[Ended, ...]:
    """Roll back or finish every instant whose writer is dead."""
    own = await clock_probe(handle)
    try:
        return tuple(await recover_others(handle, properties, own=own))
    finally:
        await handle.backend.delete([own])


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
    return (await read_ages(handle, own))[1]


async def read_ages(handle: TableHandle, own: str) -> tuple[float, dict[str, float]]:
    """Return the store's time, and the same ages."""
    heartbeats = await read_heartbeats(handle)
    now = heartbeats.pop(own.rpartition("/")[2], max(heartbeats.values(), default=0.0))
    return now, {instant: now - modified for instant, modified in heartbeats.items()}


async def read_heartbeats(handle: TableHandle) -> dict[str, float]:
    """Return when each instant had its last heartbeat, by the store's clock. Its reservation is the first one."""
    return await _newest_below(handle, OPEN_FOLDER, HEARTBEAT_FOLDER)


async def _newest_below(handle: TableHandle, *folders: str) -> dict[str, float]:
    """Return when the newest object of each instant in these folders was put, by the store's clock."""
    found: dict[str, float] = {}
    for folder in folders:
        async for entry in handle.backend.list(folder):
            instant = below(folder, entry.path)
            found[instant] = max(entry.modified, found.get(instant, entry.modified))
    return found


def below(folder: str, path: str) -> str:
    """Return the first part of the path below the folder."""
    return path.removeprefix(f"{folder}/").partition("/")[0]


async def drop_late(handle: TableHandle, properties: TableProperties, *, now: float) -> None:
    """Delete markers, seals and heartbeats that arrived after their instant had been dropped, and clock probes of dead
    processes. ``now`` is the store's time.

    An instant that the log has not decided has lost its reservation: then they may be a living writer's for a lease.
    """
    late = await _newest_below(handle, MARKER_FOLDERS, SEAL_FOLDER, HEARTBEAT_FOLDER)
    if not late:
        return
    for reservation in await open_reservations(handle):
        late.pop(reservation.instant, None)
    for instant, modified in sorted(late.items()):
        is_old = now - modified > handle.lease_settings.expiry_s
        if instant.startswith(PROBE):
            if is_old:
                await handle.backend.delete([heartbeat_path(instant)])
        elif is_old or handle.log.history.decided(instant) is not None:
            await end_unreserved(handle, properties, instant)


async def end_unreserved(handle: TableHandle, properties: TableProperties, instant: str) -> None:
    """Drop what is stored under an instant that is not reserved, and whose writer counts as dead.

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
    """Return False if it is not an instant, or if no writer uses it that reserves it from now on."""
    with suppress(CorruptObject):
        parse_instant(instant)
        return not handle.log.history.has_passed(instant)
    return False
