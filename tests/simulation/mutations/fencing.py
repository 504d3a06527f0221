"""What is not committed is excluded, now and later: markers are read after the seal, names of losers are occupied."""

import msgpack

from tallymark.backends.concurrently import concurrently
from tallymark.backends.errors import AlreadyExists
from tallymark.engine.instants import fencing
from tallymark.engine.instants.fencing import Fencer, fence_bytes, fence_path
from tallymark.engine.instants.marked import Marked, directly_marked
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.maintenance import clean
from tallymark.engine.timeline.log import BODY_FOLDER, new_nonce
from tallymark.engine.timeline.seal import seal_path
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Mutation, Without, both, method, nothing, replaced

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


async def _put_seal_only(fencer):
    await fencer.backend.put(seal_path(fencer.instant), b"")


async def _keep_all(fencer, marked, *, keep):
    return ()


async def _delete_only(fencer, marked, *, keep):
    await fencer.backend.delete(sorted(set(marked) - set(keep)))
    return ()


async def _fence_only(fencer, marked, *, keep):
    """Fences where nothing is; what has landed stays."""
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


async def _list_after_fences(fencer, marked, *, keep):
    backend = _ListLast(fencer.backend)
    fenced = await _fence(_with(fencer, backend), marked, keep=keep)
    await backend.put_held()
    return fenced


async def _without_list(fencer, marked, *, keep):
    backend = Without(fencer.backend, "put", fencing.FENCE_FOLDER)
    return await _fence(_with(fencer, backend), marked, keep=keep)


def _with(fencer, backend):
    return Fencer(
        backend=backend,
        instant=fencer.instant,
        schema=fencer.schema,
        settings=fencer.settings,
    )


async def _fences_of_any_age(handle, *, now=None):
    paths = [entry.path async for entry in handle.backend.list(fencing.FENCE_FOLDER)]
    return [path for path in paths if handle.log.history.decided(clean._below(fencing.FENCE_FOLDER, path))]


async def _drop_unknown_bodies(handle):
    history = await handle.log.reach(handle.log.history.start)
    known = {history.entry(position).nonce for position in range(1, history.head + 1)}
    bodies = [entry.path async for entry in handle.backend.list(BODY_FOLDER)]
    await handle.backend.delete([path for path in bodies if path.rpartition("/")[2] not in known])


FENCES = (
    Mutation(
        name="a commit seals after it has read the markers",
        where=(where.without_staging, where.has_late_tasks),
        breaks="what is marked in between is neither committed nor excluded",
        fault=lambda: both(method(WriteJob, "_seal", _read_only), method(WriteJob, "_prepared", _seal_afterwards)),
    ),
    Mutation(
        name="staging stays open until the end",
        where=(where.with_staging, where.has_late_tasks),
        breaks="a task renames its file into the table after its job has removed what was lost",
        fault=lambda: method(Fencer, "close", _put_seal_only),
    ),
    Mutation(
        name="files of lost attempts stay",
        breaks="rows that no writer has committed are in the directory",
        fault=lambda: method(Fencer, "fence", _keep_all),
    ),
    Mutation(
        name="no fences: files of lost attempts are only deleted",
        where=(where.without_staging, where.has_late_tasks),
        breaks="a put in flight lands after the deletion",
        fault=lambda: method(Fencer, "fence", _delete_only),
    ),
    Mutation(
        name="a lost attempt's file that has landed stays beside the fences",
        breaks="rows that no writer has committed are in the directory",
        fault=lambda: method(Fencer, "fence", _fence_only),
    ),
    Mutation(
        name="a fence is an empty object",
        breaks="readers of the directory fail on it: it is not a Parquet file",
        fault=lambda: replaced(fencing.fence_bytes, lambda _: b""),
    ),
    Mutation(
        name="fences are listed after they are put",
        where=(where.without_staging, where.has_mishap_or_storm),
        breaks="a writer that dies in between leaves a fence that no list names",
        fault=lambda: method(Fencer, "fence", _list_after_fences),
    ),
    Mutation(
        name="fences are not listed",
        breaks="they stay permanently",
        fault=lambda: method(Fencer, "fence", _without_list),
    ),
    Mutation(
        name="fences are swept by the next clean, whatever their age",
        where=(where.without_staging, where.has_late_tasks),
        breaks="the put that they were to keep out lands after that",
        fault=lambda: replaced(clean.old_fence_lists, _fences_of_any_age),
    ),
    Mutation(
        name="what lands after the end of its instant is not dropped by a clean",
        breaks="markers and seals stay permanently",
        fault=lambda: replaced(clean._drop_late, nothing),
    ),
    Mutation(
        name="bodies of entries that were never added to the log are not dropped by a clean",
        where=(where.has_bodies,),
        breaks="they stay permanently",
        fault=lambda: replaced(clean._drop_bodies, nothing),
    ),
    Mutation(
        name="a body is dropped by a clean that does not find its entry, however young it is",
        where=(where.has_bodies,),
        breaks="its entry follows, and cannot be read",
        fault=lambda: replaced(clean._drop_bodies, _drop_unknown_bodies),
    ),
)
