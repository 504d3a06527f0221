"""What the log must not have for a commit to follow it. Pure."""

from collections.abc import Iterable, Sequence

from tallymark.engine.errors import TryAgain
from tallymark.engine.jobs.txn import check_not_committed
from tallymark.engine.timeline.conflict import check_conflicts
from tallymark.engine.timeline.entry import DataFile, LogEntry
from tallymark.engine.timeline.history import History


def check_commit(entry: LogEntry, firsts: Sequence[int], history: History, *, read: Iterable[DataFile] = ()) -> None:
    """Check that the entry may follow the history, whose entries after its base are available. An error that is raised
    once is raised for each later history, too.

    The txn is checked first: the second of two twins gets the result, not a conflict. ``firsts`` are the sequence
    numbers of the first batch of each producer of the entry. ``read`` is as in ``check_conflicts``.

    Raises:
        ConflictError: another commit conflicts, or has the same txn.
        InvalidRequest: the txn is archived.
        TryAgain: a batch of a producer was committed before.
    """
    check_not_committed(entry, history)
    for (producer, _), first in zip(entry.producers, firsts, strict=True):
        if first <= (last := history.last_of(producer)):
            raise TryAgain(
                f"producer {producer!r} has committed batches up to {last} by another stream since, and this write "
                f"has batch {first}; append again: what is committed is not written twice"
            )
    check_conflicts(entry, history.after(entry.base), read=read)
