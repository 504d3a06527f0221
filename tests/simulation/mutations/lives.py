"""A job that outlives its table commits nothing there; a marker deletes nothing but its own instant's files."""

from dataclasses import replace

import anyio

from tallymark.backends.errors import NotFound
from tallymark.engine.errors import CorruptObject, TallymarkError
from tallymark.engine.instants import fencing, marked
from tallymark.engine.jobs import open_job
from tallymark.engine.maintenance.checkpoint import checkpoint_due
from tallymark.engine.markers import loading, segment
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.log import CommitLog
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Group, replaced

LIVES = Group("Tables that are replaced")

_apply = History.apply
_load = loading.load_markers
_decode = segment.decode_segment


async def _any_fences(backend, path):
    try:
        return fencing.decode_fences(await backend.get(path), source=path)
    except NotFound:
        return []


@LIVES.member(History, "apply", where.is_replaced)
def _apply_any_hash(history, entry):
    """The hash of the entry before is not compared. So an entry that was put after later ones of the former log counts
    in an older copy.
    """
    is_ours = history.table != "" and entry.table == history.table
    _apply(history, replace(entry, previous=history._hashes[-1]) if is_ours else entry)


@LIVES.member(History, "apply", where.is_replaced)
def _apply_any(history, entry):
    """An entry counts whichever table it is of. So a job of the former table commits into the one that was made
    again.
    """
    _apply(history, replace(entry, table=history.table, previous=history._hashes[-1]))


@LIVES.member(CommitLog, "_checked_position", where.is_replaced)
async def _not_compared(log, entry, position):
    """A writer does not look at the log again after its put. So it takes its void entry for a commit."""
    return position


@LIVES.function(open_job._end, where.is_replaced, where.has_checkpoints)
async def _end_as_ever(job, handle, properties):
    """A job that has found its table replaced ends as any other. So it projects the former log, and leaves a checkpoint
    of it.
    """
    with anyio.CancelScope(shield=True), anyio.move_on_after(handle.commit_settings.end_timeout_s):
        try:
            await job.end()
            await open_job._clean(handle, properties)
            await checkpoint_due(handle, properties)
        except TallymarkError:
            return


DAMAGE = Group("Markers that others have changed")


@DAMAGE.function(fencing.own_paths, where.has_foreign_names)
def _all_paths(instant, paths, *, source):
    """Foreign names among the markers are deleted. So files that another job has committed, the properties or the log
    are gone.
    """
    return list(paths)


@DAMAGE.fault(where.has_foreign_names)
def _foreign_fences():
    """Foreign names on a list of fences are swept. So files that another job has committed, the properties or the log
    are gone.
    """
    return replaced(fencing.read_fences, _any_fences)


@DAMAGE.function(segment.decode_segment, where.has_damage)
def _decode_or_none(data, *, source, rewritten=False):
    """A damaged segment counts as one without markers. So what a dead writer has left stays."""
    try:
        return _decode(data, source=source, rewritten=rewritten)
    except CorruptObject:
        return []


@DAMAGE.function(segment.decode_segment, where.has_damage)
def _decode_empty(data, *, source, rewritten=False):
    """An empty segment counts as one without markers. So what a dead writer has left stays."""
    return _decode(data, source=source, rewritten=rewritten) if data else []


@DAMAGE.function(loading.load_markers, where.has_damage)
async def _unclaimed(backend, folder, **named):
    """A claim without a segment counts as no markers. So what a dead writer has left stays."""
    loaded = await _load(backend, folder, **named)
    loaded.is_claimed = False
    return loaded


@DAMAGE.function(marked.marked_in_storage, where.has_damage)
async def _known_paths(handle, reservation, **named):
    """The table is not listed where markers are missing or unreadable. So what a dead writer has left stays."""
    try:
        loaded = await _load(handle.backend, segment.marker_folder(reservation.instant), concurrency=8)
    except CorruptObject:
        return marked.Marked(batched=frozenset(), direct=frozenset())
    return marked.Marked(batched=loaded.paths, direct=frozenset())
