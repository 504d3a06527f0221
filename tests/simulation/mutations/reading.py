"""Readers under leases find their files; a view follows the log, and answers for the position that was requested."""

from itertools import count
from typing import Any

import anyio

from tallymark.engine.inspection import leased_snapshot
from tallymark.engine.inspection.table_view import TableView
from tallymark.engine.instants.open_instants import open_reservations
from tallymark.engine.maintenance import readers
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.log import CommitLog
from tallymark.engine.views import block
from tallymark.engine.views.view import View, ViewAt, live_files
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Mutation, method, nothing, replaced

_find_readers = readers.find_readers
_held = leased_snapshot._held


async def _nobody_reads(handle):
    return readers.Readers(living=(), dead=())


async def _early_head(handle, properties, lease, position, as_of):
    """The position is the head that was read before the lease was there."""
    return position if as_of is None else await _held(handle, properties, lease, position, as_of)


async def _asked_once(handle):
    """Reuse what was found at the first read, before the instant of a clean was reserved."""
    if not hasattr(handle.log, "_readers_found"):
        handle.log._readers_found = await _find_readers(handle)
    return handle.log._readers_found


async def _until_decided_without_the_log(handle):
    """Reads the log before it looks for open cleans, and not after."""
    found = [each for each in await open_reservations(handle) if each.operation == "clean"]
    while found:
        history = handle.log.history
        found = [each for each in found if await leased_snapshot._stands(handle, each)]
        found = [each for each in found if history.decided(each.instant) is None]
        if found:
            await leased_snapshot._decide_dead(handle, found)
            await anyio.sleep(1.0)
            await handle.log.refresh()


READERS = (
    Mutation(
        name="a clean ignores readers' leases",
        where=(where.has_lease,),
        by=("readers_under_leases_find_their_files",),
        breaks="files are deleted during a read",
        fault=lambda: replaced(readers.find_readers, _nobody_reads),
    ),
    Mutation(
        name="a reader reads the log before it puts its lease",
        where=(where.has_lease_at_head,),
        by=("readers_under_leases_find_their_files",),
        breaks="what is replaced and cleaned in between is missing from its snapshot",
        fault=lambda: replaced(leased_snapshot._held, _early_head),
    ),
    Mutation(
        name="a reader of an older position does not check for open cleans",
        where=(where.has_lease,),
        by=("readers_under_leases_find_their_files",),
        breaks="a clean that had listed leases before expires files of that position",
        fault=lambda: replaced(leased_snapshot._until_cleans_are_decided, nothing),
    ),
    Mutation(
        name="a reader of an older position reads the log before it looks for open cleans",
        where=(where.halts_at_a_clean,),
        by=("readers_under_leases_find_their_files",),
        breaks="a clean that had listed leases before wins its entry in between, and the reader does not learn it",
        fault=lambda: replaced(leased_snapshot._until_cleans_are_decided, _until_decided_without_the_log),
    ),
    Mutation(
        name="a clean lists leases before it reserves its instant, and not after",
        where=(where.has_lease,),
        by=("readers_under_leases_find_their_files",),
        breaks="a reader of an older position puts its lease in between, and sees no clean",
        fault=lambda: replaced(readers.find_readers, _asked_once),
    ),
)


_sync: Any = View.sync
_open = CommitLog._open


class _WithoutRollbacks:
    """A history in which rollbacks take no position."""

    def __init__(self, history):
        self._history = history

    def __getattr__(self, name):
        return getattr(self._history, name)

    def after(self, position):
        entries = (entry for _, entry in self._history.after(position) if entry.kind != "rollback")
        return zip(count(position + 1), entries, strict=False)


def _pass_over_rollbacks(view, history):
    _sync(view, _WithoutRollbacks(history))


async def _files_as_of_the_head(answers, partition):
    return live_files(await answers.block(partition), partition, answers._view.head)


def _purge_all(view, partition):
    view._store.purge(partition, view.head)


async def _what_is_known(view):
    return view.at(view.statistics().head)


async def _begin_at_the_end(log):
    await _open(log)
    base = log.history.base
    if base:
        log.history = History(log._start._base.manifest.history)


VIEWS = (
    Mutation(
        name="a sync skips rollbacks as if they had no position",
        where=(where.has_viewer,),
        by=("a_view_is_never_newer_than_its_reader",),
        breaks="what is committed after a rollback is seen at a position before it",
        fault=lambda: method(View, "sync", _pass_over_rollbacks),
    ),
    Mutation(
        name="an answer is of the view's head",
        where=(where.has_viewer,),
        by=("a_view_is_never_newer_than_its_reader", "never_misses_a_committed_file"),
        breaks="a task that queries the position at which its job started gets files that were added later",
        fault=lambda: method(ViewAt, "files", _files_as_of_the_head),
    ),
    Mutation(
        name="a sync does not read the log",
        where=(where.has_viewer,),
        by=("never_misses_a_committed_file",),
        breaks="a query for the newest position misses commits that had returned before it",
        fault=lambda: method(TableView, "sync", _what_is_known),
    ),
    Mutation(
        name="a view does not apply what an entry removes",
        where=(where.has_viewer,),
        by=("a_view_is_never_newer_than_its_reader",),
        breaks="replaced files are returned beside those that replace them",
        fault=lambda: replaced(block.mark_removed, lambda *_: True),
    ),
    Mutation(
        name="a process that starts at a checkpoint treats it as the end of the log",
        where=(where.has_checkpoints,),
        by=("never_misses_a_committed_file", "all_or_nothing"),
        breaks="a process that has just started does not know the entries after it",
        fault=lambda: method(CommitLog, "_open", _begin_at_the_end),
    ),
    Mutation(
        name="a purge goes beyond the floor",
        where=(where.has_viewer, where.keeps_replaced, where.has_overwrite),
        by=("never_misses_a_committed_file",),
        breaks="a position that is retained lacks the files that were replaced after it",
        fault=lambda: method(View, "_purge", _purge_all),
    ),
    Mutation(
        name="a view's floor does not rise",
        where=(where.has_viewer, where.keeps_replaced, where.has_overwrite),
        by=("answers_exactly_what_is_retained", "never_serves_a_deleted_file"),
        breaks="files are returned that a clean has expired",
        fault=lambda: method(View, "_raise_floor", lambda *_: None),
    ),
)
