"""Each commit that waits has its own verdict; an append to a stream is acknowledged when its entry is won, once."""

from dataclasses import replace

from tallymark.backends.concurrently import concurrently
from tallymark.engine.instants import project
from tallymark.engine.jobs import commit_check
from tallymark.engine.streams.stream import Stream
from tallymark.engine.timeline import group
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.log import CommitLog
from tallymark.engine.timeline.projection import projected_files
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Group

TOGETHER = Group("Commits that wait, and streams")

_may_join = group._may_join
_take = CommitLog._take
_commit = Stream._commit
_check_commit = commit_check.check_commit
_apply_commit = History._apply_commit


@TOGETHER.function(group._may_join, where.has_jobs_beside)
def _joins_though_ended(attempt, others, history):
    """A group takes a commit whose instant was rolled back. So a commit is reported that is void."""
    decided = history.decided(attempt.entry.instant)
    if decided is not None and decided.kind == "rollback":
        return attempt.joins and attempt.outcome is None
    return _may_join(attempt, others, history)


@TOGETHER.function(group._may_join, where.has_jobs_beside)
def _joins_though_won(attempt, others, history):
    """A commit whose put was unclear joins another group though it is in the log. So the log contains it twice."""
    decided = history.decided(attempt.entry.instant)
    if decided is not None and decided.kind == "commit":
        return attempt.joins
    return _may_join(attempt, others, history)


@TOGETHER.member(CommitLog, "_take", where.has_jobs_beside)
async def _one_verdict(log, members, number):
    """All commits that wait get the verdict of the first one. So those that have not joined it are reported, and are
    not in the log.
    """
    await _take(log, members, number)
    for attempt in log._waiting.values():
        if attempt.joins and attempt.outcome is None:
            attempt.outcome = members[0].outcome


@TOGETHER.member(CommitLog, "_take", where.has_jobs_beside)
async def _unclear_is_won(log, members, number):
    """All members of a group count as won when its put has no answer, but the one that has put it. So they are reported
    as committed though the put has failed.
    """
    await _take(log, members, number)
    for attempt in members[1:]:
        if attempt.outcome is None and attempt.unclear == number:
            attempt.outcome = number


@TOGETHER.function(project._put_batch, where.has_jobs_beside)
async def _completed_at_once(handle, properties, commits):
    """The files that complete several entries are put at once. So readers of the Hudi format see a commit without the
    one before it.
    """
    history = handle.log.history
    files = [
        projected_files(member, properties, new_partitions=history.new_partitions(number))
        for number, members in commits
        for member in members
    ]
    for some in ([each for one in files for each in one[:-1]], [one[-1] for one in files[:-1]], [files[-1][-1]]):
        await concurrently(lambda file: project.put_projected(handle, file), some, limit=32)


@TOGETHER.member(Stream, "_commit", where.has_stream)
async def _acknowledged_first(stream, job, batch, previous):
    """A stream acknowledges appends before their entry is won. So a driver that dies has acknowledged what is lost."""
    stream._settle(batch, stream._history().head + 1)
    return await _commit(stream, job, batch, previous)


@TOGETHER.function(commit_check.check_commit, where.has_stream)
def _producers_unchecked(entry, firsts, history, *, read=()):
    """The last number of a producer is not compared at the commit. So an append is written twice whose first entry
    lands after its repeat has started.
    """
    _check_commit(replace(entry, producers=()), (), history, read=read)


@TOGETHER.member(History, "_apply_commit", where.has_stream)
def _latest_flush_only(history, entry):
    """The last number of a producer is that of the newest instant, not of the newest commit that has rows of it. So an
    append that was committed before is written twice.
    """
    _apply_commit(history, entry)
    if entry.instant == history.newest_instant:
        history._producers = dict(entry.producers)


@TOGETHER.member(Stream, "_commit", where.has_stream)
async def _overtaken(stream, job, batch, previous):
    """A flush does not wait for the one before. So appends of a producer are committed out of order, and the earlier
    one is refused.
    """
    return await _commit(stream, job, batch, None)
