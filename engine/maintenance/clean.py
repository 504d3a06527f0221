"""Clean of a table: remains of dead writers, replaced files whose retention is over, and fences no task can meet."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from tallymark.backends.events import EventLog
from tallymark.engine.instants.fencing import FENCE_FOLDER, read_fences
from tallymark.engine.instants.finish import Progress
from tallymark.engine.instants.open_instants import open_reservations
from tallymark.engine.instants.rollback import Ended
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.maintenance.expire import CleanScan, Due, expire, find_due
from tallymark.engine.maintenance.readers import drop_dead, find_readers
from tallymark.engine.maintenance.recovery import below, end_abandoned
from tallymark.engine.maintenance.store_time import store_time
from tallymark.engine.metrics.registry import PROCESS
from tallymark.engine.timeline.log import BODY_FOLDER
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.reader_lease import Reader
from tallymark.engine.views.checkpoint_format import CHECKPOINT_FOLDER, put_for

NOTHING = CleanScan(entries=0, partitions=0)

_events = EventLog(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanResult:
    ended: tuple[Ended, ...]
    """Instants of dead writers that were rolled back or finished."""
    fences_swept: int
    """Names on the deleted lists; not each of them needed its fence."""
    files: int
    """Replaced files whose retention was over. Files of ended instants are not among them."""
    bytes: int
    partitions: tuple[str, ...]
    """Partition paths of these files."""
    horizon: int
    """Files that were replaced up to this position of the log are deleted; 0 with ``readers="directory"``, where they
    are deleted at once.
    """
    held_files: int
    """Replaced files whose retention was over and which remain for ``readers``."""
    readers: tuple[Reader, ...]
    """Readers whose leases keep files: who they are, and from which position on they read."""
    looked_at: CleanScan
    """Parts of the log and the table that were read to find the files due."""
    is_dry_run: bool
    """Whether nothing was deleted: the result states what a clean would do."""

    @classmethod
    def of(
        cls, ended: tuple[Ended, ...], fences_swept: int, expired: Due | None, *, horizon: int, is_dry_run: bool = False
    ) -> "CleanResult":
        files = () if expired is None else expired.files
        return cls(
            ended=ended,
            fences_swept=fences_swept,
            files=len(files),
            bytes=sum(file.bytes for file in files),
            partitions=tuple(sorted({file.partition for file in files})),
            horizon=horizon if expired is None else max(horizon, expired.horizon),
            held_files=0 if expired is None else len(expired.held),
            readers=() if expired is None else expired.readers,
            looked_at=NOTHING if expired is None else expired.looked_at,
            is_dry_run=is_dry_run,
        )


async def clean(
    handle: TableHandle, properties: TableProperties, retain_hours: float | None, progress: Progress | None
) -> CleanResult:
    """End the instants of dead writers, and delete everything whose time is over.

    That is: objects that arrived after an instant's end, replaced files that were kept for ``retain_hours`` (None: the
    table keeps none), and fences that no task can meet any more.
    """
    ended = await end_abandoned(handle, properties)
    expired = None if retain_hours is None else await _expire(handle, properties, retain_hours, progress)
    swept = await sweep_fences(handle, now=partial(store_time, handle))
    await _drop_bodies(handle)
    await drop_strays(handle)
    result = CleanResult.of(ended, swept, expired, horizon=handle.log.history.horizon)
    PROCESS.count("cleans")
    _events.info(
        "table.cleaned",
        url=handle.backend.url,
        ended=len(ended),
        files=result.files,
        bytes=result.bytes,
        held=result.held_files,
        fences_swept=swept,
    )
    return result


async def _expire(
    handle: TableHandle, properties: TableProperties, retain_hours: float, progress: Progress | None
) -> Due:
    due = await find_due(handle, retain_hours, now=partial(store_time, handle))
    if not due.files:
        await drop_dead(handle, await find_readers(handle))
        return due
    return await expire(handle, properties, due, progress=progress)


async def sweep_fences(handle: TableHandle, *, now: Callable[[], Awaitable[float]] | None = None) -> int:
    """Delete the fences that no task can meet any more, and their lists. Return the number of their names.

    ``now`` as in ``old_fence_lists``.
    """
    swept = 0
    for path in await old_fence_lists(handle, now=now):
        fences = await read_fences(handle.backend, path)
        await handle.backend.delete(fences)
        await handle.backend.delete([path])
        swept += len(fences)
    return swept


async def old_fence_lists(handle: TableHandle, *, now: Callable[[], Awaitable[float]] | None = None) -> list[str]:
    """Return the lists whose fences no task can meet any more.

    ``now`` returns the time of the store's clock; by default it is that of the newest entry: what was old then, is old.

    A fence may be much younger than its list, since its writer may have been paused in between. But the writer put it
    before the entry of a commit, or before it released a rolled-back instant: so both must be over, and the entry must
    be as old as the list has to be.
    """
    lists = [entry async for entry in handle.backend.list(FENCE_FOLDER)]
    if not lists:
        return []
    put = await handle.log.times()
    latest = (put.newest if now is None else await now()) - handle.commit_settings.zombie_after_s
    history = handle.log.history
    decided = {entry.path: history.decided(below(FENCE_FOLDER, entry.path)) for entry in lists}
    old = {entry.path: at for entry in lists if entry.modified <= latest and (at := decided[entry.path]) is not None}
    if not old:
        return []
    is_open = {reservation.instant for reservation in await open_reservations(handle)}
    return [path for path, at in old.items() if put.at(at.position) <= latest and at.instant not in is_open]


async def _drop_bodies(handle: TableHandle) -> None:
    """Delete the bodies of entries that are not in the log and never will be, since it has decided their instant
    otherwise.

    A writer of such a body was to put its entry at the number after those that it had read, and the decision is not
    among these. So that number is taken by now. While an instant is undecided its body remains, however old: its writer
    may live, and return to the commit.
    """
    by_instant: dict[str, list[str]] = {}
    async for entry in handle.backend.list(BODY_FOLDER):
        by_instant.setdefault(below(BODY_FOLDER, entry.path), []).append(entry.path)
    history = handle.log.history
    for instant, paths in by_instant.items():
        decided = history.decided(instant)
        if decided is None or decided.position <= history.start:
            continue  # the body of an archived entry is deleted after the entry, by ``archive``
        if decided.kind != "commit" or len(paths) > 1 or decided.position > history.base:
            # One of an older commit is treated as its own. That of a rollback may be, too: its entry decides.
            known = (await handle.log.reach(decided.position - 1)).entry_of(decided).nonce
            await handle.backend.delete([path for path in paths if path.rpartition("/")[2] != known])


async def drop_strays(handle: TableHandle) -> None:
    """Delete objects that were put for a position before the newest checkpoint's, and are not part of the newest two,
    nor of one from which the writer of an open instant has read the log.

    No process will make a checkpoint of them: a writer of such a position reads the pointer again before it puts its
    own, finds another, and gives up. Objects put for the newest checkpoint's own position may be about to replace a
    damaged one, and remain until a checkpoint has passed it, as do those for a later position. While the newest
    checkpoint cannot be read everything remains, since its parts are unknown.
    """
    found = [entry.path async for entry in handle.backend.list(CHECKPOINT_FOLDER)]
    if not found:
        return
    bases = {reservation.base for reservation in await open_reservations(handle)}
    names = await handle.checkpoints.pointer()
    manifests = [await handle.checkpoints.read(name) for name in names]
    newest = manifests[0] if manifests else None
    if newest is None:
        return
    older = [path.rpartition("/")[2] for path in found if "." not in path.rpartition("/")[2] and put_for(path) in bases]
    manifests += [await handle.checkpoints.read(name, is_needed=False) for name in older if name not in names]
    named = {path for manifest in manifests if manifest is not None for path in manifest.paths}
    passed = [path for path in found if (position := put_for(path)) is not None and position < newest.position]
    await handle.backend.delete([path for path in passed if path not in named])
