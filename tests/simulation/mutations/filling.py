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
from tests.simulation.mutations.mutation import Mutation, method, nothing, replaced

_new_entry = WriteJob._new_entry
_entry_without = LostFillRewriter.entry_without


def _keep_old(job, added, replaced, fenced, marked):
    entry = _new_entry(job, added, replaced, fenced, marked)
    return entry if entry.scope is not None else replace(entry, removed=())


def _none_lost(fills, history, *, planned_at):
    return ()


async def _commit_all_the_same(job, entry, error):
    lost = job._sizing.lost(job._handle.log.history)
    if not lost:
        raise error
    stays = {fill.old.path for fill in lost}
    removed = tuple(file for file in entry.removed if file.path not in stays)
    job._entry = replace(entry, nonce=new_nonce(), removed=removed)


async def _drop_rows(self, fill, files):
    return None


async def _unlooked(self, entry, lost, fencer):
    blind = copy(self)
    blind._lease = SimpleNamespace(check_log=nothing)
    return await _entry_without(blind, entry, lost, fencer)


async def _unmarked_name(self, partition):
    name = new_file_name(instant=self._ticket.instant, task=0, stage=0, attempt=0)
    self._names.add(DataFile(partition, name, 0, 0).path)
    return name


class _Kind(Fencer):
    """Lets what is lost stay."""

    async def fence(self, marked, *, keep):
        return ()


async def _keep_gone(self, entry, lost, fencer):
    kind = _Kind(backend=fencer.backend, instant=fencer.instant, schema=fencer.schema, settings=fencer.settings)
    return await _entry_without(self, entry, lost, kind)


FILLS = (
    Mutation(
        name="a fill keeps the old file",
        where=(where.has_fill,),
        breaks="its rows are in the table twice",
        fault=lambda: method(WriteJob, "_new_entry", _keep_old),
    ),
    Mutation(
        name="a lost fill drops its rows",
        where=(where.has_fill,),
        breaks="rows of an append are lost that were reported as committed",
        fault=lambda: method(LostFillRewriter, "_own_file", _drop_rows),
    ),
    Mutation(
        name="a lost fill is committed all the same",
        where=(where.has_fill,),
        breaks="the rows of the small file are in the table twice, or reappear",
        fault=lambda: method(WriteJob, "_give_up_fills", _commit_all_the_same),
    ),
    Mutation(
        name="a fill that was lost is an error",
        where=(where.has_fill,),
        breaks="an append fails because of a file that its caller does not know",
        fault=lambda: replaced(lost_fills, _none_lost),
    ),
    Mutation(
        name="the file of a lost fill stays",
        where=(where.has_fill,),
        breaks="old rows are in the directory a second time",
        fault=lambda: method(LostFillRewriter, "entry_without", _keep_gone),
    ),
    Mutation(
        name="the file of a rewritten lost fill is not marked",
        where=(where.has_fill,),
        breaks="if its writer dies, no process can name it",
        fault=lambda: method(LostFillRewriter, "_marked_name", _unmarked_name),
    ),
    Mutation(
        name="a writer that rewrites a lost fill does not read the log",
        where=(where.without_staging, where.pauses_while_rewriting),
        breaks="it writes a file after another has rolled it back, and read its markers",
        fault=lambda: method(LostFillRewriter, "entry_without", _unlooked),
    ),
    Mutation(
        name="a rollback does not close the staging directory of rewritten lost fills",
        where=(where.with_staging, where.pauses_while_rewriting),
        breaks="the writer adds its file to the table after the rollback has checked for it",
        fault=lambda: mock.patch.object(finish, "recut_folder", staging_folder),
    ),
)
