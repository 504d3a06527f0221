"""Group commit of log entries: which of the entries that wait are decided by one object."""

import secrets
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from tallymark.engine.errors import ConflictError
from tallymark.engine.timeline.conflict import check_conflicts
from tallymark.engine.timeline.entry import LogEntry
from tallymark.engine.timeline.history import History

GROUP_COUNT = 256
"""Most commits that one entry decides: of 1,000 callers that each wait 30 ms for storage, eight times as many as wait
at once.
"""

GROUP_FILES = 2048
"""Most files of these commits together: some 250 kB, so that the deciding put remains small and quick."""


ANY_NUMBER = sys.maxsize
"""Number of a put that another process may start at any time."""


def _passes(history: History) -> None:
    """Do nothing: the check of an attempt that was not started."""


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """An entry that is to be in the log, as ``CommitLog.win`` takes it."""

    entry: LogEntry
    check: Callable[[History], None]
    is_protected: Callable[[], bool]
    joins: bool = False
    is_asked: bool = False


@dataclass(slots=True, eq=False)
class Attempt:
    """Progress of an entry on its way into the log."""

    entry: LogEntry
    time_ms: int
    """When the attempt was started, by the writer's clock."""
    has_body: bool = False
    """Whether its body is durable, apart from the bytes under its number."""
    unclear: int | None = None
    """A number whose put was started and which has not been read since."""
    check: Callable[[History], None] = field(default=_passes)
    is_protected: Callable[[], bool] = field(default=lambda: False)
    joins: bool = False
    outcome: int | Exception | None = None
    """The position of the entry, or why it is not in the log; None until then."""

    def start(self, proposal: Proposal) -> None:
        """Begin, or begin again after an unclear end."""
        self.check, self.is_protected, self.joins = proposal.check, proposal.is_protected, proposal.joins
        self.outcome = None
        if proposal.is_asked:
            self.unclear = ANY_NUMBER

    def has_read(self, head: int) -> None:
        """Record that the log was read up to here without the instant: an unclear put at such a number has failed."""
        if self.unclear is not None and self.unclear <= head:
            self.unclear = None


def group_of(first: Attempt, waiting: Iterable[Attempt], history: History) -> list[Attempt]:
    """Return the attempts that are tried together with the first, which has been checked, in order.

    Entries that conflict with one another are not in one group: the later one is checked against the earlier when that
    is in the log. One whose check fails has its outcome on return.
    """
    group = [first]
    if not first.joins or not history.table:
        return group
    files, names = _files(first), {*_names(first.entry)}
    for attempt in waiting:
        if len(group) == GROUP_COUNT or files >= GROUP_FILES:
            break
        if attempt is first or not names.isdisjoint(_names(attempt.entry)) or files + _files(attempt) > GROUP_FILES:
            continue
        if not _may_join(attempt, group, history):
            continue
        try:
            attempt.check(history)
        except Exception as error:
            attempt.outcome = error
        else:
            group.append(attempt)
            files += _files(attempt)
            names.update(_names(attempt.entry))
    return group


def entry_of(group: Sequence[Attempt]) -> LogEntry:
    """Return the entry that decides these attempts: that of the only one, or a group."""
    time_ms = max(attempt.time_ms for attempt in group)
    if len(group) == 1:
        return replace(group[0].entry, time_ms=time_ms)
    return replace(LogEntry.group_of([each.entry for each in group], nonce=secrets.token_hex(16)), time_ms=time_ms)


def _files(attempt: Attempt) -> int:
    return len(attempt.entry.added) + len(attempt.entry.removed) + len(attempt.entry.fenced)


def _names(entry: LogEntry) -> list[tuple[str, str]]:
    """Return what two members of one group must not have in common."""
    txns = [] if entry.txn is None else [("txn", entry.txn)]
    return [("instant", entry.instant), *txns, *(("producer", producer) for producer, _ in entry.producers)]


def _may_join(attempt: Attempt, group: list[Attempt], history: History) -> bool:
    entry = attempt.entry
    attempt.has_read(history.head)
    is_undecided = attempt.outcome is None and history.decided(entry.instant) is None
    is_reached = entry.is_plain_append or entry.base >= history.base
    if not attempt.joins or not is_undecided or not is_reached:
        return False
    if attempt.unclear not in (None, history.head + 1):
        return False
    try:
        check_conflicts(entry, ((history.head + 1, other.entry) for other in group))
    except ConflictError:
        return False
    return True
