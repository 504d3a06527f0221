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
from tests.simulation.mutations.mutation import Group, both, member

DECISIONS = Group("Deciding")

_put_beside_check = CommitLog._put_beside_check
_win = CommitLog.win
_clean = clean.clean
_new_entry = WriteJob._new_entry
_common = Scope.common
_static_scope = target._static_scope
_base_of = WriteBase.of


async def _pointer_first(self, attempt, linked):
    data = encode_entry(linked)
    return data if len(data) <= log.BODY_BYTES else encode_pointer(linked, log._body_path(linked))


async def _body_last(self, group, linked, number):
    continues = await _put_beside_check(self, group, linked, number)
    if len(data := encode_entry(linked)) > log.BODY_BYTES:
        await self._backend.put(log._body_path(linked), data)
    return continues


@DECISIONS.member(CommitLog, "_put_beside_check")
async def _put_over(self, group, linked, number):
    """An entry is put over what may be there. So a committed entry is lost."""
    await self._backend.put(f"{LOG_FOLDER}/{number:020d}", await self._small_form(group[0], linked))
    return True


@DECISIONS.member(CommitLog, "_put_beside_check", where.has_storm)
async def _silence_is_failure(self, group, linked, number):
    """An unclear put of an entry is reported as failed. So a writer gets an error that its write is void, and the write
    is committed.
    """
    try:
        return await _put_beside_check(self, group, linked, number)
    except Unavailable as error:
        if linked.kind == "rollback":
            raise
        raise RolledBack(f"{error}: not committed") from error


@DECISIONS.member(CommitLog, "_put_beside_check", where.has_storm)
async def _next_number(self, group, linked, number):
    """An unclear put of an entry is repeated at the next number. So the log has a gap, or contains a write twice."""
    try:
        return await _put_beside_check(self, group, linked, number)
    except Unavailable:
        if linked.kind == "rollback":
            raise
        return await _put_beside_check(self, group, linked, number + 1)


@DECISIONS.fault(where.has_bodies)
def _body_after_entry():
    """An entry is put before its body. So a commit is decided that no process can read."""
    return both(member(CommitLog, "_small_form", _pointer_first), member(CommitLog, "_put_beside_check", _body_last))


@DECISIONS.function(clean.clean)
async def _truncating_clean(handle, properties, *how):
    """A clean drops all entries of the log but the newest. So no process knows what was committed."""
    result = await _clean(handle, properties, *how)
    await handle.backend.delete([f"{LOG_FOLDER}/{number:020d}" for number in range(1, handle.log.history.head)])
    return result


@DECISIONS.function(conflict.check_conflicts, where.has_rival_overwrites)
def _no_conflicts(*_):
    """Conflicts are not checked. So two overwrites of one partition both commit."""


@DECISIONS.member(CommitLog, "win", where.has_rival_overwrites)
async def _checked_once(self, entry, *, check, **how):
    """Conflicts are checked once, not again after a lost number. So an overwrite does not see the one that won the
    number.
    """
    checks = [check]
    return await _win(self, entry, check=lambda history: checks.pop()(history) if checks else None, **how)


@DECISIONS.function(conflict._shared, where.has_rival_overwrites)
def _no_common_partitions(*_):
    """Only common files make a conflict, common partitions do not. So two overwrites of an empty partition both
    commit.
    """
    return []


@DECISIONS.member(Scope, "common", where.names_a_year, where.has_rival_overwrites)
def _common_partitions(mine, theirs):
    """What overwrites name by a prefix of partitions makes no conflict. So two overwrites of a year, or of it and of a
    month in it, both commit.
    """

    def named(scope):
        return Scope(is_all=scope.is_all, partitions=scope.partitions)

    return _common(named(mine), named(theirs))


@DECISIONS.function(target._static_scope, where.names_a_year)
def _everything(request, properties, partition):
    """An overwrite that names a part of the table replaces all of it. So rows are lost that no writer wanted to
    replace.
    """
    return None if _static_scope(request, properties, partition) is None else Scope(is_all=True)


@DECISIONS.member(WriteBase, "of", where.overwrites_what_was_read)
def _base_is_the_head(log, position, view):
    """The base that a caller gives is ignored. So rows that were added between its reading and its writing are
    overwritten unseen.
    """
    return _base_of(log, None, view)


@DECISIONS.member(WriteBase, "of", where.overwrites_what_was_read)
def _since_it_began(log, position, view):
    """Conflicts are checked since the write started, not since the base that its caller gave. So an overwrite removes
    what another has replaced before it started.
    """
    return replace(_base_of(log, position, view), position=log.history.head)


@DECISIONS.function(txn.check_not_committed, where.has_rerun)
def _txn_not_checked(*_):
    """The txn is not checked again at the commit. So two runs of one write that meet both commit."""


@DECISIONS.member(WriteJob, "_new_entry", where.has_rival_overwrites)
def _latest_base(job, added, replaced, fenced, marked):
    """A write is compared with the log from its commit on, not from its start. So an overwrite does not see the one
    that committed in between.
    """
    history = job._handle.log.history
    job._base = replace(job._base, position=history.head)
    return _new_entry(job, added, replaced, fenced, marked)


POST_COMMIT = Group("After the entry")

_project = project.project
_project_job = WriteJob._project
_drop = finish.drop_bookkeeping
_let_go = expire.expire


@POST_COMMIT.function(project.project, by=("all_or_nothing", "nothing_lost"))
async def _project_own(handle, properties, position):
    """A writer projects its own entry only. So readers of the Hudi format see a commit without the one before it."""
    history = handle.log.history
    if position == 0:
        await _project(handle, properties, position)
    elif (entry := history.entry(position)).kind == "commit":
        files = projected_files(entry, properties, new_partitions=history.new_partitions(position))
        await concurrently(lambda file: project.put_projected(handle, file), files, limit=1)


@POST_COMMIT.member(WriteJob, "_project", where.has_overwrite)
async def _delete_then_project(job, position):
    """Replaced files are deleted before the entry is projected. So readers of the Hudi format find neither the old
    files nor the new ones.
    """
    entry = job._handle.log.history.entry(position)
    await job._handle.backend.delete([file.path for file in entry.removed])
    return await _project_job(job, position)


@POST_COMMIT.member(WriteJob, "_project")
async def _not_projected(*_):
    """A commit returns before its projection. So a caller whose commit has returned does not find it with a reader of
    the Hudi format.
    """


@POST_COMMIT.function(finish.finish, where.has_overwrite, where.has_mishap_or_storm)
async def _drop_then_delete(handle, properties, reservation, *, objects=None):
    """The reservation is deleted before the replaced files. So a writer that dies in between leaves files that no
    writer deletes.
    """
    instant = reservation.instant
    position, entry = handle.log.history.decision(instant)
    await project.project(handle, properties, position)
    await _drop(handle, instant, objects=objects)
    await handle.backend.delete([file.path for file in entry.removed])


@POST_COMMIT.function(finish.finish, where.has_overwrite)
async def _keep_replaced(handle, properties, reservation, *, objects=None):
    """Replaced files stay. So readers of the directory see rows that were overwritten."""
    instant = reservation.instant
    position, _ = handle.log.history.decision(instant)
    await project.project(handle, properties, position)
    await _drop(handle, instant, objects=objects)


@POST_COMMIT.function(expire.expire, where.keeps_replaced, where.has_overwrite)
async def _delete_then_let_go(handle, properties, due, **how):
    """Kept files are deleted before the entry that expires them. So files that are kept according to the log are
    missing.
    """
    await handle.backend.delete([file.path for file in due.files])
    return await _let_go(handle, properties, due, **how)
