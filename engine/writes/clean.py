"""Remove what may go: the remains of dead writers, and fences that nobody can run into any more."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgpack

from tallymark.backends.contract import Entry
from tallymark.backends.errors import NotFound
from tallymark.engine.errors import CorruptObject
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.writes.exclude import FENCE_FOLDER
from tallymark.engine.writes.handle import TableHandle
from tallymark.engine.writes.help import help_others, own_beat
from tallymark.engine.writes.rollback import Ended


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanResult:
    ended: tuple[Ended, ...]
    """Instants of dead writers that were rolled back or finished."""
    fences_swept: int


async def end_abandoned(handle: TableHandle, properties: TableProperties) -> tuple[Ended, ...]:
    """Roll back or finish every instant whose writer is dead."""
    own = await own_beat(handle)
    try:
        return tuple(await help_others(handle, properties, own=own))
    finally:
        await handle.backend.delete([own])


async def clean(handle: TableHandle, properties: TableProperties) -> CleanResult:
    """End what dead writers have left, then sweep the fences that no put in flight can run into any more."""
    ended = await end_abandoned(handle, properties)
    swept = 0
    async for fences in _old_fences(handle):
        paths = await _fenced_paths(handle, fences.path)
        await handle.backend.delete(paths)
        await handle.backend.delete([fences.path])
        swept += len(paths)
    return CleanResult(ended=ended, fences_swept=swept)


async def _old_fences(handle: TableHandle) -> AsyncIterator[Entry]:
    """Lists of fences that are older than ``zombie_after_s`` and whose instant is decided."""
    lists = [entry async for entry in handle.backend.list(FENCE_FOLDER)]
    if not lists:
        return
    own = await own_beat(handle)
    now = max([entry.modified async for entry in handle.backend.list(own.rpartition("/")[0]) if entry.path == own])
    await handle.backend.delete([own])
    for entry in lists:
        instant = entry.path.removeprefix(f"{FENCE_FOLDER}/").partition("/")[0]
        is_decided = handle.log.history.decision(instant) is not None
        if is_decided and now - entry.modified >= handle.commit_settings.zombie_after_s:
            yield entry


async def _fenced_paths(handle: TableHandle, path: str) -> list[str]:
    try:
        fences = msgpack.unpackb(await handle.backend.get(path))
        return [str(fence) for fence in fences]
    except NotFound:
        return []
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise CorruptObject(f"{path} is no list of fences: {error!r}") from error
