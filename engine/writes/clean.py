"""Remove what may go: the remains of dead writers, and fences that nobody can run into any more."""

from dataclasses import dataclass

from tallymark.backends.contract import Entry
from tallymark.backends.events import EventLog
from tallymark.engine.timeline.lease import BEAT_FOLDER
from tallymark.engine.timeline.log import BODY_FOLDER
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.seal import SEAL_FOLDER
from tallymark.engine.writes.exclude import FENCE_FOLDER, read_fences
from tallymark.engine.writes.finish import drop_bookkeeping
from tallymark.engine.writes.handle import TableHandle
from tallymark.engine.writes.help import drop_unreserved, help_others, open_reservations, own_beat
from tallymark.engine.writes.rollback import Ended

MARKER_FOLDERS = ".hoodie/.temp"
"""What ``marker_folder`` gives each instant a folder in."""

_events = EventLog(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanResult:
    ended: tuple[Ended, ...]
    """Instants of dead writers that were rolled back or finished."""
    fences_swept: int
    """Names on the lists that were swept; not each of them needed its fence."""


async def end_abandoned(handle: TableHandle, properties: TableProperties) -> tuple[Ended, ...]:
    """Roll back or finish every instant whose writer is dead."""
    own = await own_beat(handle)
    try:
        return tuple(await help_others(handle, properties, own=own))
    finally:
        await handle.backend.delete([own])


async def clean(handle: TableHandle, properties: TableProperties) -> CleanResult:
    """End what dead writers have left, drop what came after an end, and sweep fences that nobody runs into any more."""
    ended = await end_abandoned(handle, properties)
    await _drop_late(handle)
    swept = 0
    for entry in await _old(handle, FENCE_FOLDER):
        if handle.log.history.decision(_below(FENCE_FOLDER, entry.path)) is not None:
            paths = await read_fences(handle.backend, entry.path)
            await handle.backend.delete(paths)
            await handle.backend.delete([entry.path])
            swept += len(paths)
    await _drop_bodies(handle)
    _events.info("table.cleaned", url=handle.backend.url, ended=len(ended), fences_swept=swept)
    return CleanResult(ended=ended, fences_swept=swept)


async def _drop_late(handle: TableHandle) -> None:
    """Delete markers and seals whose put landed after their instant had been dropped.

    An instant that the log does not know may be one that its writer is about to reserve. What lies there for longer
    than a lease is not waited for: it is dropped as by ``drop_unreserved``.
    """
    late: dict[str, float] = {}
    for folder in (MARKER_FOLDERS, SEAL_FOLDER):
        async for entry in handle.backend.list(folder):
            instant = _below(folder, entry.path)
            late[instant] = max(entry.modified, late.get(instant, entry.modified))
    for reservation in await open_reservations(handle):
        late.pop(reservation.instant, None)
    undecided = {instant for instant in late if handle.log.history.decision(instant) is None}
    for instant in sorted(late.keys() - undecided):
        await drop_bookkeeping(handle, instant)
    if undecided:
        now = await _now(handle)
        for instant in sorted(undecided):
            if now - late[instant] > handle.lease_settings.expiry_s:
                await drop_unreserved(handle, instant)


async def _drop_bodies(handle: TableHandle) -> None:
    """Delete the bodies of entries that never came into the log: their writers died, or were ended, in between."""
    history = handle.log.history
    known = {history.entry(position).nonce for position in range(1, history.head + 1)}
    bodies = [entry.path for entry in await _old(handle, BODY_FOLDER)]
    await handle.backend.delete([path for path in bodies if _below(BODY_FOLDER, path) not in known])


async def _old(handle: TableHandle, folder: str) -> list[Entry]:
    """What lies in the folder for longer than ``zombie_after_s``, by the store's clock."""
    found = [entry async for entry in handle.backend.list(folder)]
    if not found:
        return []
    now = await _now(handle)
    return [entry for entry in found if now - entry.modified >= handle.commit_settings.zombie_after_s]


async def _now(handle: TableHandle) -> float:
    """The store's time, by the newest beat: one's own, unless that was swept by somebody who is far ahead."""
    own = await own_beat(handle)
    try:
        beats = [entry.modified async for entry in handle.backend.list(BEAT_FOLDER)]
    finally:
        await handle.backend.delete([own])
    return max(beats, default=0.0)


def _below(folder: str, path: str) -> str:
    """The first part of the path below the folder."""
    return path.removeprefix(f"{folder}/").partition("/")[0]
