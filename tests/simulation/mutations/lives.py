"""A job that outlives its table commits nothing there; a marker deletes nothing but its own instant's files."""

from dataclasses import replace

import anyio

from tallymark.backends.errors import NotFound
from tallymark.engine.errors import CorruptObject, TallymarkError
from tallymark.engine.instants import fencing, rollback
from tallymark.engine.jobs import open_job
from tallymark.engine.maintenance.checkpoint import checkpoint_due
from tallymark.engine.markers import loading, segment
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.log import CommitLog
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Mutation, method, nothing, replaced

_apply = History.apply
_load = loading.load_markers
_decode = segment.decode_segment


def _apply_any_hash(history, entry):
    is_ours = history.table != "" and entry.table == history.table
    _apply(history, replace(entry, previous=history._hashes[-1]) if is_ours else entry)


def _apply_any(history, entry):
    _apply(history, replace(entry, table=history.table, previous=history._hashes[-1]))


async def _end_as_ever(job, handle, properties):
    with anyio.CancelScope(shield=True), anyio.move_on_after(handle.commit_settings.end_timeout_s):
        try:
            await job.end()
            await open_job._clean(handle, properties)
            await checkpoint_due(handle, properties)
        except TallymarkError:
            return


async def _any_fences(backend, path):
    try:
        return fencing.decode_fences(await backend.get(path), source=path)
    except NotFound:
        return []


LIVES = (
    Mutation(
        name="the hash of the entry before is not compared",
        where=(where.is_replaced,),
        breaks="an entry that was put after later ones of the former log counts in an older copy",
        fault=lambda: method(History, "apply", _apply_any_hash),
    ),
    Mutation(
        name="an entry counts whichever table it is of",
        where=(where.is_replaced,),
        breaks="a job of the former table commits into the one that was made again",
        fault=lambda: method(History, "apply", _apply_any),
    ),
    Mutation(
        name="a writer does not look at the log again after its put",
        where=(where.is_replaced,),
        breaks="it takes its void entry for a commit",
        fault=lambda: method(CommitLog, "_check_same_log", nothing),
    ),
    Mutation(
        name="a job that has found its table replaced ends as any other",
        where=(where.is_replaced, where.has_checkpoints),
        breaks="it projects the former log, and leaves a checkpoint of it",
        fault=lambda: replaced(open_job._end, _end_as_ever),
    ),
)


def _decode_or_none(data, *, source, rewritten=False):
    try:
        return _decode(data, source=source, rewritten=rewritten)
    except CorruptObject:
        return []


def _decode_empty(data, *, source, rewritten=False):
    return _decode(data, source=source, rewritten=rewritten) if data else []


async def _unclaimed(backend, folder, *, concurrency):
    loaded = await _load(backend, folder, concurrency=concurrency)
    loaded.is_claimed = False
    return loaded


async def _known_paths(handle, reservation):
    try:
        loaded = await _load(handle.backend, segment.marker_folder(reservation.instant), concurrency=8)
    except CorruptObject:
        return frozenset()
    return loaded.paths


DAMAGE = (
    Mutation(
        name="foreign names among the markers are deleted",
        where=(where.has_foreign_names,),
        breaks="files that another job has committed, the properties or the log are gone",
        fault=lambda: replaced(fencing.own_paths, lambda instant, paths, *, source: list(paths)),
    ),
    Mutation(
        name="foreign names on a list of fences are swept",
        where=(where.has_foreign_names,),
        breaks="files that another job has committed, the properties or the log are gone",
        fault=lambda: replaced(fencing.read_fences, _any_fences),
    ),
    Mutation(
        name="a damaged segment counts as one without markers",
        where=(where.has_damage,),
        breaks="what a dead writer has left stays",
        fault=lambda: replaced(segment.decode_segment, _decode_or_none),
    ),
    Mutation(
        name="an empty segment counts as one without markers",
        where=(where.has_damage,),
        breaks="what a dead writer has left stays",
        fault=lambda: replaced(segment.decode_segment, _decode_empty),
    ),
    Mutation(
        name="a claim without a segment counts as no markers",
        where=(where.has_damage,),
        breaks="what a dead writer has left stays",
        fault=lambda: replaced(loading.load_markers, _unclaimed),
    ),
    Mutation(
        name="the table is not listed where markers are missing or unreadable",
        where=(where.has_damage,),
        breaks="what a dead writer has left stays",
        fault=lambda: replaced(rollback.marked_paths, _known_paths),
    ),
)
