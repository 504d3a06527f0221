"""What is not committed is excluded, now and later: markers are read after the seal, names of losers are occupied."""

import msgpack

from tallymark.backends.concurrently import concurrently
from tallymark.backends.errors import AlreadyExists
from tallymark.engine.instants import fencing
from tallymark.engine.instants.fencing import Fencer, fence_bytes, fence_path
from tallymark.engine.instants.marked import Marked, directly_marked
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.maintenance import clean, recovery
from tallymark.engine.timeline.log import BODY_FOLDER, new_nonce
from tallymark.engine.timeline.seal import seal_path
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Group, Without, both, member

FENCES = Group("Excluding what is lost")

_fence = Fencer.fence
_prepared = WriteJob._prepared


async def _read_only(job):
    direct = await directly_marked(job._handle.backend, job.instant)
    acked = frozenset() if job._reservation.marker_kind == "direct" else await job._directory.names()
    return Marked(batched=frozenset(name.path for name in acked), direct=direct)


async def _seal_afterwards(job, *arguments):
    entry = await _prepared(job, *arguments)
    job._directory.seal()
    await job._fencer().close()
    return entry


class _ListLast:
    """Storage on which the list of fences is put with ``flush_list``."""

    def __init__(self, backend):
        self._backend = backend
        self._held = []

    def __getattr__(self, name):
        return getattr(self._backend, name)

    async def put(self, path, data):
        self._held.append((path, data))

    async def put_held(self):
        for path, data in self._held:
            await self._backend.put(path, data)


def _with(fencer, backend):
    return Fencer(
        backend=backend,
        instant=fencer.instant,
        schema=fencer.schema,
        settings=fencer.settings,
    )


@FENCES.fault(where.without_staging, where.has_late_tasks)
def _sealed_after_reading():
    """A commit seals after it has read the markers. So what is marked in between is neither committed nor excluded."""
    return both(member(WriteJob, "_seal", _read_only), member(WriteJob, "_prepared", _seal_afterwards))


@FENCES.member(Fencer, "close", where.with_staging, where.has_late_tasks)
async def _put_seal_only(fencer):
    """Staging stays open until the end. So a task renames its file into the table after its job has removed what was
    lost.
    """
    await fencer.backend.put(seal_path(fencer.instant), b"")


@FENCES.member(Fencer, "fence")
async def _keep_all(fencer, marked, *, keep):
    """Files of lost attempts stay. So rows that no writer has committed are in the directory."""
    return ()


@FENCES.member(Fencer, "fence", where.without_staging, where.has_late_tasks)
async def _delete_only(fencer, marked, *, keep):
    """No fences: files of lost attempts are only deleted. So a put in flight lands after the deletion."""
    await fencer.backend.delete(sorted(set(marked) - set(keep)))
    return ()


@FENCES.member(Fencer, "fence")
async def _fence_only(fencer, marked, *, keep):
    """A lost attempt's file that has landed stays beside the fences. So rows that no writer has committed are in the
    directory.
    """
    if fencer.backend.has_staging:
        return await _fence(fencer, marked, keep=keep)
    fence, lost, fenced = fence_bytes(fencer.schema), sorted(set(marked) - set(keep)), []
    await fencer.backend.put(fence_path(fencer.instant, new_nonce()), msgpack.packb(lost))

    async def put(path):
        try:
            await fencer.backend.put_new(path, fence)
        except AlreadyExists:
            return
        fenced.append(path)

    await concurrently(put, lost, limit=32)
    return tuple(sorted(fenced))


@FENCES.function(fencing.fence_bytes)
def _empty_fence(_):
    """A fence is an empty object. So readers of the directory fail on it: it is not a Parquet file."""
    return b""


@FENCES.member(Fencer, "fence", where.without_staging, where.has_mishap_or_storm)
async def _list_after_fences(fencer, marked, *, keep):
    """Fences are listed after they are put. So a writer that dies in between leaves a fence that no list names."""
    backend = _ListLast(fencer.backend)
    fenced = await _fence(_with(fencer, backend), marked, keep=keep)
    await backend.put_held()
    return fenced


@FENCES.member(Fencer, "fence")
async def _without_list(fencer, marked, *, keep):
    """Fences are not listed. So they stay permanently."""
    backend = Without(fencer.backend, "put", fencing.FENCE_FOLDER)
    return await _fence(_with(fencer, backend), marked, keep=keep)


@FENCES.function(clean.old_fence_lists, where.without_staging, where.has_late_tasks)
async def _fences_of_any_age(handle, *, now=None):
    """Fences are swept by the next clean, whatever their age. So the put that they were to keep out lands after
    that.
    """
    paths = [entry.path async for entry in handle.backend.list(fencing.FENCE_FOLDER)]
    return [path for path in paths if handle.log.history.decided(recovery.below(fencing.FENCE_FOLDER, path))]


@FENCES.function(recovery.drop_late)
async def _late_stays(*_, now):
    """What lands after the end of its instant is not dropped. So markers and seals stay permanently."""


@FENCES.function(clean._drop_bodies, where.has_bodies)
async def _bodies_stay(*_):
    """Bodies of entries that were never added to the log are not dropped by a clean. So they stay permanently."""


@FENCES.function(clean._drop_bodies, where.has_bodies)
async def _drop_unknown_bodies(handle):
    """A body is dropped by a clean that does not find its entry, however young it is. So its entry follows, and cannot
    be read.
    """
    history = await handle.log.reach(handle.log.history.start)
    known = {history.entry(position).nonce for position in range(1, history.head + 1)}
    bodies = [entry.path async for entry in handle.backend.list(BODY_FOLDER)]
    await handle.backend.delete([path for path in bodies if path.rpartition("/")[2] not in known])
