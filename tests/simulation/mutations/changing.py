"""Writes by key: rows are found where they are, each once, and no other writer has added one since."""

from unittest import mock

from tallymark.engine.jobs.job_sizing import JobSizing
from tallymark.engine.jobs.keyed import KeyedChanges
from tallymark.engine.tasks import open_file
from tallymark.engine.tasks.merge import FileMerge
from tallymark.engine.tasks.report import Fill, TaskReport
from tallymark.engine.timeline import conflict
from tallymark.engine.timeline.scope import Scope
from tallymark.engine.upsert import locate
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Group, both, member, replaced

CHANGES = Group("Writes by key")

_check_late = KeyedChanges.check_late
_reported = JobSizing.reported
_lost = JobSizing.lost
_give_up = JobSizing.give_up
_numbered = locate._numbered
_shared = conflict._shared
_remaining = FileMerge._remaining


@CHANGES.member(KeyedChanges, "check_late", where.has_changes)
def _late_files_unseen(changes, history):
    """Keys are not looked up in files that others have added since. So two upserts of one new key both commit."""


@CHANGES.member(KeyedChanges, "check_late", where.has_changes)
def _late_files_once(changes, history):
    """Keys are looked up in late files once, not again when more have been added. So a key of those is doubled."""
    if changes._late_since is None:
        _check_late(changes, history)


def _with_rewrites(sizing, fills, winners):
    _reported(sizing, fills, winners)
    sizing.rewrites = tuple(
        Fill(old, tuple(file.path for file in report.files if file.partition == old.partition))
        for report in winners
        for old in report.rewrites
    )


def _lost_rewrites(sizing, history):
    gone = {file.path for file in history.replaced(range(sizing._planned_at + 1, history.head + 1))}
    rewrites = tuple(each for each in sizing.rewrites if each.old.path in gone and each.paths)
    return _lost(sizing, history) + rewrites


def _give_up_rewrites(sizing, lost):
    _give_up(sizing, lost)
    sizing.rewrites = tuple(each for each in sizing.rewrites if each not in lost)


@CHANGES.fault(where.has_changes, by=("rows_are_those_of_committed_writers",))
def _recut_rewrites():
    """A rewrite whose file is lost is cut as if it were a fill. So changes of rows are lost that were reported."""
    return both(
        member(JobSizing, "reported", _with_rewrites),
        member(JobSizing, "lost", _lost_rewrites),
        member(JobSizing, "give_up", _give_up_rewrites),
        mock.patch.object(KeyedChanges, "read", ()),
    )


@CHANGES.fault(where.has_changes)
def _unread():
    """Files whose rows a write has found, and left as they were, may be replaced. So it goes by rows that were gone."""
    return mock.patch.object(KeyedChanges, "read", ())


@CHANGES.fault(where.has_changes, by=("rows_are_those_of_committed_writers",))
def _off_by_one():
    """Positions of rows are one too high, and their keys are not compared. So rows of other keys are replaced."""
    return both(
        replaced(_numbered, lambda rows, first: _numbered(rows, first + 1)),
        member(FileMerge, "_check_keys", lambda *_: None),
    )


@CHANGES.fault(where.has_changes, by=("rows_are_those_of_committed_writers",))
def _cut_short():
    """A merge loses the rows after the last change, and rows are not added up. So rows of other keys are lost."""
    as_counted = property(lambda report: report.changes.inserted - report.changes.deleted)
    return both(
        member(FileMerge, "_remaining", lambda merge: iter(list(_remaining(merge))[:0])),
        mock.patch.object(TaskReport, "rows", as_counted),
    )


@CHANGES.member(KeyedChanges, "_check_rewritten", where.has_drift)
def _drifted(changes, found):
    """Neither rows nor hashes of the input are compared with those that were looked up. So a row that was not looked up
    doubles its key.
    """
    return 0


@CHANGES.member(open_file, "union", where.has_changes)
def _first_part(one, other):
    """The range of a file is that of its first rows. So a key that is there is not found, and doubled."""
    return one or other


@CHANGES.member(KeyedChanges, "_may_have", where.has_changes)
def _own_partition_only(changes, file):
    """A key that is unique in the table is looked up in its own partition. So it is there in two of them."""
    segments = changes._segments
    return [each for each in segments if any(keys.partition == file.partition for keys in each.partitions)]


@CHANGES.function(conflict._shared, where.has_changes, where.has_overwrite)
def _upserts_unseen(mine, theirs):
    """An overwrite goes by a base from before an upsert of what it replaces. So both have rows of one key there."""
    return _shared(mine, theirs) if theirs.scope is not None else Scope()
