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
from tests.simulation.mutations.mutation import Group

_BY_READERS = ("readers_under_leases_find_their_files",)

READERS = Group("Reading under a lease")

_find_readers = readers.find_readers
_held = leased_snapshot._held


@READERS.function(readers.find_readers, where.has_lease, by=_BY_READERS)
async def _nobody_reads(handle):
    """A clean ignores readers' leases. So files are deleted during a read."""
    return readers.Readers(living=(), dead=())


@READERS.function(leased_snapshot._held, where.has_lease_at_head, by=_BY_READERS)
async def _early_head(handle, properties, lease, position, as_of):
    """A reader reads the log before it puts its lease. So what is replaced and cleaned in between is missing from its
    snapshot.
    """
    return position if as_of is None else await _held(handle, properties, lease, position, as_of)


@READERS.function(leased_snapshot._until_cleans_are_decided, where.has_lease, by=_BY_READERS)
async def _cleans_not_checked(*_):
    """A reader of an older position does not check for open cleans. So a clean that had listed leases before expires
    files of that position.
    """


@READERS.function(leased_snapshot._until_cleans_are_decided, where.halts_at_a_clean, by=_BY_READERS)
async def _until_decided_without_the_log(handle):
    """A reader of an older position reads the log before it looks for open cleans. So a clean that had listed leases
    before wins its entry in between, and the reader does not learn it.
    """
    found = [each for each in await open_reservations(handle) if each.operation == "clean"]
    while found:
        history = handle.log.history
        found = [each for each in found if await leased_snapshot._stands(handle, each)]
        found = [each for each in found if history.decided(each.instant) is None]
        if found:
            await leased_snapshot._decide_dead(handle, found)
            await anyio.sleep(1.0)
            await handle.log.refresh()


@READERS.function(readers.find_readers, where.has_lease, by=_BY_READERS)
async def _asked_once(handle):
    """A clean lists leases before it reserves its instant, and not after. So a reader of an older position puts its
    lease in between, and sees no clean.
    """
    # Reuse what was found at the first read, before the instant of a clean was reserved.
    if not hasattr(handle.log, "_readers_found"):
        handle.log._readers_found = await _find_readers(handle)
    return handle.log._readers_found


VIEWS = Group("Views")

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


@VIEWS.member(View, "sync", where.has_viewer, by=("a_view_is_never_newer_than_its_reader",))
def _pass_over_rollbacks(view, history):
    """A sync skips rollbacks as if they had no position. So what is committed after a rollback is seen at a position
    before it.
    """
    _sync(view, _WithoutRollbacks(history))


@VIEWS.member(
    ViewAt, "files", where.has_viewer, by=("a_view_is_never_newer_than_its_reader", "never_misses_a_committed_file")
)
async def _files_as_of_the_head(answers, partition):
    """An answer is of the view's head. So a task that queries the position at which its job started gets files that
    were added later.
    """
    return live_files(await answers.block(partition), partition, answers._view.head)


@VIEWS.member(TableView, "sync", where.has_viewer, by=("never_misses_a_committed_file",))
async def _what_is_known(view):
    """A sync does not read the log. So a query for the newest position misses commits that had returned before it."""
    return view.at(view.statistics().head)


@VIEWS.function(block.mark_removed, where.has_viewer, by=("a_view_is_never_newer_than_its_reader",))
def _nothing_removed(*_):
    """A view does not apply what an entry removes. So replaced files are returned beside those that replace them."""
    return True


@VIEWS.member(CommitLog, "_open", where.has_checkpoints, by=("never_misses_a_committed_file", "all_or_nothing"))
async def _begin_at_the_end(log):
    """A process that starts at a checkpoint treats it as the end of the log. So a process that has just started does
    not know the entries after it.
    """
    await _open(log)
    base = log.history.base
    if base:
        log.history = History(log._start._base.manifest.history)


@VIEWS.member(
    View, "_purge", where.has_viewer, where.keeps_replaced, where.has_overwrite, by=("never_misses_a_committed_file",)
)
def _purge_all(view, partition):
    """A purge goes beyond the floor. So a position that is retained lacks the files that were replaced after it."""
    view._store.purge(partition, view.head)


@VIEWS.member(
    View,
    "release",
    where.has_viewer,
    where.keeps_replaced,
    where.has_overwrite,
    by=("answers_exactly_what_is_retained", "never_serves_a_deleted_file"),
)
def _floor_stays(*_):
    """A view's floor does not rise. So files are returned that a clean has expired."""
