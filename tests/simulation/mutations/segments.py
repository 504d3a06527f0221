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
from tests.simulation.mutations.mutation import Group

SEGMENTS = Group("Segments and their server", world="markers")

_flush = MarkerDirectory.flush
_create = MarkerDirectory._create
_offer = MarkerQueue.offer
_carry = group_commit._carry
_put = SegmentMerge._put
_read_objects = loading.read_objects
_until_answered = flushing.until_answered


@SEGMENTS.function(group_commit._carry)
async def _answer_first(directory, batch):
    """Markers are answered before their flush. So an acked marker does not survive a crash."""
    directory.complete(batch)
    with suppress(TallymarkError):
        await directory.flush(batch)


@SEGMENTS.member(MarkerDirectory, "flush")
async def _visible_first(directory, batch):
    """Markers are visible before they are durable. So a second request for the same marker is acked before its
    flush.
    """
    directory._durable.update(batch.lines)
    await _flush(directory, batch)


@SEGMENTS.member(MarkerQueue, "offer")
def _new_only(queue, lines, *, retry_after_s):
    """A request for a marker in flight is answered at once that it exists. So that answer does not survive a crash."""
    fresh = [line for line in lines if line not in queue]
    return _offer(queue, fresh, retry_after_s=retry_after_s)


@SEGMENTS.member(MarkerDirectory, "flush")
async def _swallow(directory, batch):
    """An error of a flush is swallowed. So markers are acked that no object contains."""
    try:
        await _flush(directory, batch)
    except TallymarkError:
        return


@SEGMENTS.function(flushing.until_answered)
async def _silence_is_success(request, settings, path, pace=None):
    """A put without an answer counts as durable. So markers are acked that no object contains."""
    try:
        return await request()
    except Unavailable:
        return True


@SEGMENTS.member(MarkerDirectory, "_create")
async def _drop_on_cancel(directory, lines):
    """A request that is cancelled takes its names out of the batch. So others that wait for the same names are
    acked.
    """
    try:
        return await _create(directory, lines)
    except anyio.get_cancelled_exc_class():
        forming = directory.queue._forming
        for line in set(lines):
            if forming is not None and line in forming.lines:
                forming.lines.remove(line)
                del directory.queue._batch_of[line]
        raise


@SEGMENTS.function(group_commit._carry)
async def _freed_on_success(directory, batch):
    """A worker is not freed when its flush fails. So when none is left, no request is answered any more."""
    failed = directory.counts.batches_failed
    await _carry(directory, batch)
    if directory.counts.batches_failed > failed:
        await anyio.sleep_forever()


@SEGMENTS.member(SegmentNumbers, "claim", where.has_many_servers)
async def _claim_nothing(numbers, incarnation):
    """An incarnation is not claimed. So two servers of an instant use the same numbers."""
    numbers._incarnation, numbers._sequence = incarnation, 0


@SEGMENTS.member(MarkerDirectory, "_load")
async def _load_nothing(directory):
    """A server does not read the markers that are stored. So it does not know the markers of the one before it."""
    return LoadedMarkers()


@SEGMENTS.member(SegmentMerge, "_put")
async def _delete_first(merge, run):
    """A merge deletes before its put. So a crash in between deletes acked markers."""
    data = await merge._read(run)
    if data is None or merge._is_over:
        return None
    await merge._backend.delete([segment.path for segment in run])
    return await _put(merge, run)


@SEGMENTS.member(SegmentMerge, "_put", where.has_many_servers)
async def _delete_unread(merge, run):
    """A merge deletes what it has not read. So acked markers of another server are deleted."""
    # Delete what other servers have put there since, too.
    merged = await _put(merge, run)
    if merged is not None:
        folder = merged.path.rpartition("/")[0]
        found = [entry.path async for entry in merge._backend.list(folder) if "/MARKERS" in entry.path]
        keep = (merged.path, f"{folder}/MARKERS.type")
        merge._superfluous += [path for path in found if path not in keep]
    return merged


@SEGMENTS.function(loading.load_markers)
async def _list_once(backend, folder, *, concurrency, ends_servers=False):
    """A load of the markers lists once. So a merge moves markers to a name that the listing has already passed."""
    loaded = LoadedMarkers()
    listing = [entry.path async for entry in backend.list(folder) if loading.is_marker_object(folder, entry.path)]
    await _read_objects(backend, folder, loaded, listing, concurrency)
    return loaded


@SEGMENTS.member(MarkerEngine, "close")
def _not_closed(_):
    """A closed engine leaves waiting requests without an answer. So they wait permanently, or are acked after the
    end.
    """
