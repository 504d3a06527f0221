"""A txn: the name under which a write is committed once and only once, however often it is run.

Owns: what makes two writes of one txn the same, and that the first commit counts. Does not own: the form of a txn
(``request``), which entry is won (``timeline.log``), nor what a job does that finds its txn committed (``rerun``,
``write_job``).
"""

import json

from tallymark.engine.errors import ConflictError, InvalidRequest
from tallymark.engine.timeline.entry import LogEntry
from tallymark.engine.timeline.history import History
from tallymark.engine.writes.target import WriteTarget


def declared(target: WriteTarget) -> str:
    """What a write is to do, in one form whatever the words in which it was said.

    Neither the schema is part of it, since a table has one, nor what only guards a write: ``base`` is another one in
    each run, and ``only_partitions`` changes nothing that is written.
    """
    words = {"mode": "overwrite" if target.is_overwrite else "append"}
    if target.partition is not None:
        words["partition"] = target.partition.path
    if target.is_overwrite:
        words["partition_overwrite"] = "dynamic" if target.static_scope is None else "static"
    return json.dumps(words, sort_keys=True)


def committed_write(history: History, txn: str | None, request: str) -> tuple[int, LogEntry] | None:
    """The position and entry that committed the txn; None while none has, or without one.

    Raises:
        InvalidRequest: what was committed had been declared otherwise than in ``request``.
    """
    found = None if txn is None else history.committed_as(txn)
    if found is not None and found[1].request != request:
        position, entry = found
        raise InvalidRequest(
            f"txn={txn!r} was committed at position {position} (instant {entry.instant}) as {entry.request}, and this "
            f"call declares {request}: a txn names one write; give this one a txn of its own, or repeat the call as it "
            "was"
        )
    return found


def check_not_committed(mine: LogEntry, history: History) -> None:
    """Return if no other entry has committed the txn of this one. Raises ConflictError."""
    found = None if mine.txn is None else history.committed_as(mine.txn)
    if found is not None:
        position, theirs = found
        raise ConflictError(
            f"txn={mine.txn!r} was committed at position {position} by instant {theirs.instant}, and instant "
            f"{mine.instant} is of the same txn",
            partition=None,
            winner=theirs.instant,
        )
