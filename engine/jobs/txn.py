"""Txn: the name under which a write is committed exactly once, however often it is run.

Owns: what makes two writes of one txn the same, and that the first commit counts. Does not own: the form of a txn
(``request``), which entry is won (``timeline.log``), nor what a job does that finds its txn committed (``rerun``,
``write_job``).
"""

import json
from hashlib import sha256

from tallymark.engine.errors import ConflictError, InvalidRequest
from tallymark.engine.jobs.target import WriteTarget
from tallymark.engine.timeline.entry import LogEntry
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.log import CommitLog


def declared(target: WriteTarget) -> str:
    """Return what a write is to do, in a canonical form.

    The schema is not part of it, since the table has one; nor are arguments that only guard a write: ``base`` differs
    in each run, and ``only_partitions`` changes nothing that is written.
    """
    words: dict[str, str] = {"mode": target.request.mode}
    if target.request.mode == "upsert":
        words["when_matched"] = target.request.when_matched
        if target.request.delete_column is not None:
            words["delete_column"] = target.request.delete_column
    if target.predicate is not None:
        words["where"] = sha256(str(target.predicate).encode()).hexdigest()  # the log does not keep what was deleted
    if target.partition is not None:
        words["partition"] = target.partition.path
    if target.is_overwrite:
        words["partition_overwrite"] = "dynamic" if target.static_scope is None else "static"
    return json.dumps(words, sort_keys=True)


async def committed_write(log: CommitLog, txn: str | None, request: str) -> tuple[int, LogEntry] | None:
    """Read the log to its end. Return the position and entry that committed the txn; None while there is none, or
    without a txn.

    Raises:
        InvalidRequest: the committed write was declared differently than in ``request``, or is archived, or may be.
        TableReplaced: it was committed to another table, which had this URL before.
    """
    if txn is None:
        return None
    history = await log.refresh(verify=True)
    _check_known(txn, history)
    position = history.txn_position(txn)
    if position is None:
        return None
    history = await log.reach(position - 1)
    entry = next(member for member in history.members_at(position) if member.txn == txn)
    if entry.request != request:
        raise InvalidRequest(
            f"txn={txn!r} was committed at position {position} (instant {entry.instant}) as {entry.request}, and this "
            f"call declares {request}: a txn names one write; give this one a txn of its own, or repeat the call as it "
            "was"
        )
    return position, entry


def _check_known(txn: str, history: History) -> None:
    """Raise InvalidRequest where the txn was committed, or may have been, by an entry that is archived."""
    position, last = history.txn_position(txn), history.last_archived(txn)
    if position is not None and position <= history.start:
        raise InvalidRequest(
            f"txn={txn!r} was committed at position {position}, and the log up to {history.start} is archived, with "
            "the result of that write; nothing was written: leave the write out, or give it another batch"
        )
    if last is not None:
        raise InvalidRequest(
            f"txn={txn!r}: {last!r} is the last archived batch of this name, and this one does not follow it, so it "
            "may have been committed before; nothing was written: leave the write out, or give it a later batch "
            "(digits count by their number) or another name"
        )


def check_not_committed(mine: LogEntry, history: History) -> None:
    """Check that no other entry has committed the txn of this one. Raises ConflictError, or InvalidRequest where
    that is archived.
    """
    if mine.txn is not None:
        _check_known(mine.txn, history)
    position = None if mine.txn is None else history.txn_position(mine.txn)
    if position is not None:
        winner = history.instants_at(position)[0]
        raise ConflictError(
            f"txn={mine.txn!r} was committed at position {position} by instant {winner}, and instant "
            f"{mine.instant} is of the same txn",
            partition=None,
            winner=winner,
        )
