"""A fill replaces its small file by the entry that adds its rows; one that was lost keeps its new rows, no others."""

from copy import copy
from dataclasses import replace
from types import SimpleNamespace
from unittest import mock

from tallymark.engine.instants import finish
from tallymark.engine.instants.fencing import Fencer
from tallymark.engine.instants.finish import staging_folder
from tallymark.engine.jobs.fills import lost_fills
from tallymark.engine.jobs.lost_fills import LostFillRewriter
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.tasks.file_name import new_file_name
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.log import new_nonce
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Group, nothing

FILLS = Group("Filling small files")

_new_entry = WriteJob._new_entry
_entry_without = LostFillRewriter.entry_without


class _Kind(Fencer):
    """Lets what is lost stay."""

    async def fence(self, marked, *, keep):
        return ()


@FILLS.member(WriteJob, "_new_entry", where.has_fill)
def _keep_old(job, added, replaced, fenced, marked):
    """A fill keeps the old file. So its rows are in the table twice."""
    entry = _new_entry(job, added, replaced, fenced, marked)
    return entry if entry.scope is not None else replace(entry, removed=())


@FILLS.member(LostFillRewriter, "_own_file", where.has_fill)
async def _drop_rows(self, fill, files):
    """A lost fill drops its rows. So rows of an append are lost that were reported as committed."""


@FILLS.member(WriteJob, "_give_up_fills", where.has_fill)
async def _commit_all_the_same(job, entry, error):
    """A lost fill is committed all the same. So the rows of the small file are in the table twice, or reappear."""
    lost = job._sizing.lost(job._handle.log.history)
    if not lost:
        raise error
    stays = {fill.old.path for fill in lost}
    removed = tuple(file for file in entry.removed if file.path not in stays)
    job._entry = replace(entry, nonce=new_nonce(), removed=removed)


@FILLS.function(lost_fills, where.has_fill)
def _none_lost(fills, history, *, planned_at):
    """A fill that was lost is an error. So an append fails because of a file that its caller does not know."""
    return ()


@FILLS.member(LostFillRewriter, "entry_without", where.has_fill)
async def _keep_gone(self, entry, lost, fencer):
    """The file of a lost fill stays. So old rows are in the directory a second time."""
    kind = _Kind(backend=fencer.backend, instant=fencer.instant, schema=fencer.schema, settings=fencer.settings)
    return await _entry_without(self, entry, lost, kind)


@FILLS.member(LostFillRewriter, "_marked_name", where.has_fill)
async def _unmarked_name(self, partition):
    """The file of a rewritten lost fill is not marked. So if its writer dies, no process can name it."""
    name = new_file_name(instant=self._ticket.instant, task=0, stage=0, attempt=0)
    self._names.add(DataFile(partition, name, 0, 0).path)
    return name


@FILLS.member(LostFillRewriter, "entry_without", where.without_staging, where.pauses_while_rewriting)
async def _unlooked(self, entry, lost, fencer):
    """A writer that rewrites a lost fill does not read the log. So it writes a file after another has rolled it back,
    and read its markers.
    """
    blind = copy(self)
    blind._lease = SimpleNamespace(check_log=nothing)
    return await _entry_without(blind, entry, lost, fencer)


@FILLS.fault(where.with_staging, where.pauses_while_rewriting)
def _one_staging_folder():
    """A rollback does not close the staging directory of rewritten lost fills. So the writer adds its file to the table
    after the rollback has checked for it.
    """
    return mock.patch.object(finish, "recut_folder", staging_folder)
