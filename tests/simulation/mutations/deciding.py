"""One put-if-absent decides an instant; then the committed state is projected and finished."""

from dataclasses import replace

from tallymark.backends.concurrently import concurrently
from tallymark.backends.errors import Unavailable
from tallymark.engine.errors import RolledBack
from tallymark.engine.instants import finish, project
from tallymark.engine.jobs import target, txn
from tallymark.engine.jobs.base import WriteBase
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.maintenance import clean, expire
from tallymark.engine.timeline import conflict, log
from tallymark.engine.timeline.entry import encode_entry, encode_pointer
from tallymark.engine.timeline.log import LOG_FOLDER, CommitLog
from tallymark.engine.timeline.projection import projected_files
from tallymark.engine.timeline.scope import Scope
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Mutation, both, method, nothing, replaced

_take = CommitLog._take
_win = CommitLog.win
_clean = clean.clean
_new_entry = WriteJob._new_entry
_common = Scope.common
_static_scope = target._static_scope
_base_of = WriteBase.of


async def _put_over(self, attempt, number):
    attempt.data = await self._small_form(attempt.entry)
    await self._backend.put(f"{LOG_FOLDER}/{number:020d}", attempt.data)
    return number


async def _silence_is_failure(self, attempt, number):
    try:
        return await _take(self, attempt, number)
    except Unavailable as error:
        if attempt.entry.kind == "rollback":
            raise
        raise RolledBack(f"{error}: not committed") from error


async def _next_number(self, attempt, number):
    try:
        return await _take(self, attempt, number)
    except Unavailable:
        if attempt.entry.kind == "rollback":
            raise
        return await _take(self, attempt, number + 1)


async def _checked_once(self, entry, *, check):
    checks = [check]
    return await _win(self, entry, check=lambda history: checks.pop()(history) if checks else None)


async def _pointer_first(self, attempt, linked):
    data = encode_entry(linked)
    return data if len(data) <= log.BODY_BYTES else encode_pointer(linked, log._body_path(linked))


async def _body_last(self, attempt, number):
    position = await _take(self, attempt, number)
    if len(data := encode_entry(self.history.linked(attempt.entry))) > log.BODY_BYTES:
        await self._backend.put(log._body_path(attempt.entry), data)
    return position


async def _truncating_clean(handle, properties, *how):
    result = await _clean(handle, properties, *how)
    await handle.backend.delete([f"{LOG_FOLDER}/{number:020d}" for number in range(1, handle.log.history.head)])
    return result


def _latest_base(job, added, replaced, fenced, marked):
    history = job._handle.log.history
    job._base = replace(job._base, position=history.head)
    return _new_entry(job, added, replaced, fenced, marked)


def _common_partitions(mine, theirs):
    def named(scope):
        return Scope(is_all=scope.is_all, partitions=scope.partitions)

    return _common(named(mine), named(theirs))


def _everything(request, properties, partition):
    return None if _static_scope(request, properties, partition) is None else Scope(is_all=True)


def _base_is_the_head(view, log, position=None):
    return _base_of(view, log)


def _since_it_began(view, log, position=None):
    return replace(_base_of(view, log, position), position=view.head)


DECISIONS = (
    Mutation(
        name="an entry is put over what may be there",
        breaks="a committed entry is lost",
        fault=lambda: method(CommitLog, "_take", _put_over),
    ),
    Mutation(
        name="an unclear put of an entry is reported as failed",
        where=(where.has_storm,),
        breaks="a writer gets an error that its write is void, and the write is committed",
        fault=lambda: method(CommitLog, "_take", _silence_is_failure),
    ),
    Mutation(
        name="an unclear put of an entry is repeated at the next number",
        where=(where.has_storm,),
        breaks="the log has a gap, or contains a write twice",
        fault=lambda: method(CommitLog, "_take", _next_number),
    ),
    Mutation(
        name="an entry is put before its body",
        where=(where.has_bodies,),
        breaks="a commit is decided that no process can read",
        fault=lambda: both(method(CommitLog, "_small_form", _pointer_first), method(CommitLog, "_take", _body_last)),
    ),
    Mutation(
        name="a clean drops all entries of the log but the newest",
        breaks="no process knows what was committed",
        fault=lambda: replaced(clean.clean, _truncating_clean),
    ),
    Mutation(
        name="conflicts are not checked",
        where=(where.has_rival_overwrites,),
        breaks="two overwrites of one partition both commit",
        fault=lambda: replaced(conflict.check_conflicts, lambda *_: None),
    ),
    Mutation(
        name="conflicts are checked once, not again after a lost number",
        where=(where.has_rival_overwrites,),
        breaks="an overwrite does not see the one that won the number",
        fault=lambda: method(CommitLog, "win", _checked_once),
    ),
    Mutation(
        name="only common files make a conflict, common partitions do not",
        where=(where.has_rival_overwrites,),
        breaks="two overwrites of an empty partition both commit",
        fault=lambda: replaced(conflict._shared, lambda *_: []),
    ),
    Mutation(
        name="what overwrites name by a prefix of partitions makes no conflict",
        where=(where.names_a_year, where.has_rival_overwrites),
        breaks="two overwrites of a year, or of it and of a month in it, both commit",
        fault=lambda: method(Scope, "common", _common_partitions),
    ),
    Mutation(
        name="an overwrite that names a part of the table replaces all of it",
        where=(where.names_a_year,),
        breaks="rows are lost that no writer wanted to replace",
        fault=lambda: replaced(target._static_scope, _everything),
    ),
    Mutation(
        name="the base that a caller gives is ignored",
        where=(where.overwrites_what_was_read,),
        breaks="rows that were added between its reading and its writing are overwritten unseen",
        fault=lambda: method(WriteBase, "of", _base_is_the_head),
    ),
    Mutation(
        name="conflicts are checked since the write started, not since the base that its caller gave",
        where=(where.overwrites_what_was_read,),
        breaks="an overwrite removes what another has replaced before it started",
        fault=lambda: method(WriteBase, "of", _since_it_began),
    ),
    Mutation(
        name="the txn is not checked again at the commit",
        where=(where.has_rerun,),
        breaks="two runs of one write that meet both commit",
        fault=lambda: replaced(txn.check_not_committed, lambda *_: None),
    ),
    Mutation(
        name="a write is compared with the log from its commit on, not from its start",
        where=(where.has_rival_overwrites,),
        breaks="an overwrite does not see the one that committed in between",
        fault=lambda: method(WriteJob, "_new_entry", _latest_base),
    ),
)


_project = project.project
_project_job = WriteJob._project
_drop = finish.drop_bookkeeping
_let_go = expire.expire


async def _project_own(handle, properties, position):
    history = handle.log.history
    if position == 0:
        await _project(handle, properties, position)
    elif (entry := history.entry(position)).kind == "commit":
        files = projected_files(entry, properties, new_partitions=history.new_partitions(position))
        await concurrently(lambda file: project.put_projected(handle, file), files, limit=1)


async def _delete_then_project(job, position):
    entry = job._handle.log.history.entry(position)
    await job._handle.backend.delete([file.path for file in entry.removed])
    return await _project_job(job, position)


async def _drop_then_delete(handle, properties, reservation, *, objects=None):
    instant = reservation.instant
    position, entry = handle.log.history.decision(instant)
    await project.project(handle, properties, position)
    await _drop(handle, instant, objects=objects)
    await handle.backend.delete([file.path for file in entry.removed])


async def _keep_replaced(handle, properties, reservation, *, objects=None):
    instant = reservation.instant
    position, _ = handle.log.history.decision(instant)
    await project.project(handle, properties, position)
    await _drop(handle, instant, objects=objects)


async def _delete_then_let_go(handle, properties, due, **how):
    await handle.backend.delete([file.path for file in due.files])
    return await _let_go(handle, properties, due, **how)


POST_COMMIT = (
    Mutation(
        name="a writer projects its own entry only",
        by=("all_or_nothing", "nothing_lost"),
        breaks="readers of the Hudi format see a commit without the one before it",
        fault=lambda: replaced(project.project, _project_own),
    ),
    Mutation(
        name="replaced files are deleted before the entry is projected",
        where=(where.has_overwrite,),
        breaks="readers of the Hudi format find neither the old files nor the new ones",
        fault=lambda: method(WriteJob, "_project", _delete_then_project),
    ),
    Mutation(
        name="a commit returns before its projection",
        breaks="a caller whose commit has returned does not find it with a reader of the Hudi format",
        fault=lambda: method(WriteJob, "_project", nothing),
    ),
    Mutation(
        name="the reservation is deleted before the replaced files",
        where=(where.has_overwrite, where.has_mishap_or_storm),
        breaks="a writer that dies in between leaves files that no writer deletes",
        fault=lambda: replaced(finish.finish, _drop_then_delete),
    ),
    Mutation(
        name="replaced files stay",
        where=(where.has_overwrite,),
        breaks="readers of the directory see rows that were overwritten",
        fault=lambda: replaced(finish.finish, _keep_replaced),
    ),
    Mutation(
        name="kept files are deleted before the entry that expires them",
        where=(where.keeps_replaced, where.has_overwrite),
        breaks="files that are kept according to the log are missing",
        fault=lambda: replaced(expire.expire, _delete_then_let_go),
    ),
)
