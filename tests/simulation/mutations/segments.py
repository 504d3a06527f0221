"""A marker is durable, then visible, then answered; a segment's number is used once; nothing is deleted too early."""

from contextlib import suppress

import anyio

from tallymark.backends.errors import Unavailable
from tallymark.engine.errors import TallymarkError
from tallymark.engine.markers import flush as flushing
from tallymark.engine.markers import group_commit, loading
from tallymark.engine.markers.directory import MarkerDirectory
from tallymark.engine.markers.engine import MarkerEngine
from tallymark.engine.markers.loading import LoadedMarkers
from tallymark.engine.markers.merge import SegmentMerge
from tallymark.engine.markers.numbers import SegmentNumbers
from tallymark.engine.markers.queue import MarkerQueue
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Mutation, method, replaced

_flush = MarkerDirectory.flush
_create = MarkerDirectory._create
_offer = MarkerQueue.offer
_carry = group_commit._carry
_put = SegmentMerge._put
_read_objects = loading.read_objects
_until_answered = flushing.until_answered


async def _answer_first(directory, batch):
    directory.complete(batch)
    with suppress(TallymarkError):
        await directory.flush(batch)


async def _visible_first(directory, batch):
    directory._durable.update(batch.lines)
    await _flush(directory, batch)


def _new_only(queue, lines, *, retry_after_s):
    fresh = [line for line in lines if line not in queue]
    return _offer(queue, fresh, retry_after_s=retry_after_s)


async def _swallow(directory, batch):
    try:
        await _flush(directory, batch)
    except TallymarkError:
        return


async def _silence_is_success(request, settings, path, pace=None):
    try:
        return await request()
    except Unavailable:
        return True


async def _drop_on_cancel(directory, lines):
    try:
        return await _create(directory, lines)
    except anyio.get_cancelled_exc_class():
        forming = directory.queue._forming
        for line in set(lines):
            if forming is not None and line in forming.lines:
                forming.lines.remove(line)
                del directory.queue._batch_of[line]
        raise


async def _freed_on_success(directory, batch):
    failed = directory.counts.batches_failed
    await _carry(directory, batch)
    if directory.counts.batches_failed > failed:
        await anyio.sleep_forever()


async def _claim_nothing(numbers, incarnation):
    numbers._incarnation, numbers._sequence = incarnation, 0


async def _load_nothing(directory):
    return LoadedMarkers()


async def _delete_first(merge, run):
    data = await merge._read(run)
    if data is None or merge._is_over:
        return None
    await merge._backend.delete([segment.path for segment in run])
    return await _put(merge, run)


async def _delete_unread(merge, run):
    """Delete what other servers have put there since, too."""
    merged = await _put(merge, run)
    if merged is not None:
        folder = merged.path.rpartition("/")[0]
        found = [entry.path async for entry in merge._backend.list(folder) if "/MARKERS" in entry.path]
        keep = (merged.path, f"{folder}/MARKERS.type")
        merge._superfluous += [path for path in found if path not in keep]
    return merged


async def _list_once(backend, folder, *, concurrency):
    loaded = LoadedMarkers()
    listing = [entry.path async for entry in backend.list(folder) if loading.is_marker_object(folder, entry.path)]
    await _read_objects(backend, folder, loaded, listing, concurrency)
    return loaded


SEGMENTS = (
    Mutation(
        name="markers are answered before their flush",
        breaks="an acked marker does not survive a crash",
        fault=lambda: replaced(group_commit._carry, _answer_first),
        world="markers",
    ),
    Mutation(
        name="markers are visible before they are durable",
        breaks="a second request for the same marker is acked before its flush",
        fault=lambda: method(MarkerDirectory, "flush", _visible_first),
        world="markers",
    ),
    Mutation(
        name="a request for a marker in flight is answered at once that it exists",
        breaks="that answer does not survive a crash",
        fault=lambda: method(MarkerQueue, "offer", _new_only),
        world="markers",
    ),
    Mutation(
        name="an error of a flush is swallowed",
        breaks="markers are acked that no object contains",
        fault=lambda: method(MarkerDirectory, "flush", _swallow),
        world="markers",
    ),
    Mutation(
        name="a put without an answer counts as durable",
        breaks="markers are acked that no object contains",
        fault=lambda: replaced(flushing.until_answered, _silence_is_success),
        world="markers",
    ),
    Mutation(
        name="a request that is cancelled takes its names out of the batch",
        breaks="others that wait for the same names are acked",
        fault=lambda: method(MarkerDirectory, "_create", _drop_on_cancel),
        world="markers",
    ),
    Mutation(
        name="a worker is not freed when its flush fails",
        breaks="when none is left, no request is answered any more",
        fault=lambda: replaced(group_commit._carry, _freed_on_success),
        world="markers",
    ),
    Mutation(
        name="an incarnation is not claimed",
        where=(where.has_many_servers,),
        breaks="two servers of an instant use the same numbers",
        fault=lambda: method(SegmentNumbers, "claim", _claim_nothing),
        world="markers",
    ),
    Mutation(
        name="a server does not read the markers that are stored",
        breaks="it does not know the markers of the one before it",
        fault=lambda: method(MarkerDirectory, "_load", _load_nothing),
        world="markers",
    ),
    Mutation(
        name="a merge deletes before its put",
        breaks="a crash in between deletes acked markers",
        fault=lambda: method(SegmentMerge, "_put", _delete_first),
        world="markers",
    ),
    Mutation(
        name="a merge deletes what it has not read",
        where=(where.has_many_servers,),
        breaks="acked markers of another server are deleted",
        fault=lambda: method(SegmentMerge, "_put", _delete_unread),
        world="markers",
    ),
    Mutation(
        name="a load of the markers lists once",
        breaks="a merge moves markers to a name that the listing has already passed",
        fault=lambda: replaced(loading.load_markers, _list_once),
        world="markers",
    ),
    Mutation(
        name="a closed engine leaves waiting requests without an answer",
        breaks="they wait permanently, or are acked after the end",
        fault=lambda: method(MarkerEngine, "close", lambda _: None),
        world="markers",
    ),
)
