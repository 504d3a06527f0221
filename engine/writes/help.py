"""Do for other writers what they died before doing."""

import logging

from tallymark.backends.errors import NotFound
from tallymark.engine.timeline.lease import BEAT_FOLDER, beat_path
from tallymark.engine.timeline.log import new_nonce
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.reservation import OPEN_FOLDER, Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tallymark.engine.writes.finish import drop_bookkeeping, finish
from tallymark.engine.writes.handle import TableHandle
from tallymark.engine.writes.project import project
from tallymark.engine.writes.rollback import Ended, roll_back

logger = logging.getLogger(__name__)


async def open_reservations(handle: TableHandle) -> list[Reservation]:
    """Every instant that is being written, or was left unfinished, oldest first."""
    found = []
    async for entry in handle.backend.list(OPEN_FOLDER):
        try:
            found.append(Reservation.decode(await handle.backend.get(entry.path), source=entry.path))
        except NotFound:
            continue  # finished meanwhile
    return found


async def help_others(handle: TableHandle, properties: TableProperties, *, own: str) -> list[Ended]:
    """Project what lacks its projection, and end every instant whose writer is dead.

    ``own`` is the path of a beat that this process has just put: the age of the others is measured from it, by the
    store's clock alone.
    """
    reservations = await open_reservations(handle)  # before the beats: whoever is reserved by now has beaten before
    ages = await beat_ages(handle, own)
    history = await handle.log.refresh()
    await project(handle, properties, history.head)
    here = WriterIdentity.here()
    ended = []
    for reservation in reservations:
        if beat_path(reservation.instant) == own:
            continue
        if not is_dead(reservation, ages, seen_from=here, expiry_s=handle.lease_settings.expiry_s):
            continue
        if history.decision(reservation.instant) is None:
            age = ages.get(reservation.instant)
            logger.info("instant.abandoned instant=%s beat_age_s=%s: rolling it back", reservation.instant, age)
            ended.append(await roll_back(handle, properties, reservation))
        else:
            ended.append(await _end_decided(handle, properties, reservation))
    await _drop_unreserved(handle, ages, {reservation.instant for reservation in reservations})
    return ended


def is_dead(reservation: Reservation, ages: dict[str, float], *, seen_from: WriterIdentity, expiry_s: float) -> bool:
    """True if the writer's process has certainly ended, or its last of the beats is too old or gone."""
    age = ages.get(reservation.instant, float("inf"))
    return reservation.writer.is_gone(seen_from=seen_from) or age > expiry_s


async def own_beat(handle: TableHandle) -> str:
    """Put a beat that belongs to no instant, to tell the store's time by. The caller deletes it."""
    path = f"{BEAT_FOLDER}/probe-{new_nonce()}"
    await handle.backend.put(path, b"")
    return path


async def _end_decided(handle: TableHandle, properties: TableProperties, reservation: Reservation) -> Ended:
    decision = handle.log.history.decision(reservation.instant)
    if decision is not None and decision[1].kind == "commit":
        await finish(handle, properties, reservation.instant)
        return Ended(instant=reservation.instant, outcome="was committed", marked=0, fences=0)
    return await roll_back(handle, properties, reservation)


async def beat_ages(handle: TableHandle, own: str) -> dict[str, float]:
    """Seconds since the last beat of each instant, measured from one's own fresh beat."""
    beats = {entry.path: entry.modified async for entry in handle.backend.list(BEAT_FOLDER)}
    now = beats.get(own, max(beats.values(), default=0.0))
    return {path.rpartition("/")[2]: now - modified for path, modified in beats.items() if path != own}


async def _drop_unreserved(handle: TableHandle, ages: dict[str, float], reserved: set[str]) -> None:
    """A writer that died before it had an instant has left a beat, and no data."""
    for name, age in ages.items():
        if name not in reserved and age > handle.lease_settings.expiry_s:
            await drop_bookkeeping(handle, name)
