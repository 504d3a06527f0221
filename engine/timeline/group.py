"""Group commit of log entries: which of the entries that wait are decided by one object."""

import secrets
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


def _passes(history: History) -> None:
    """Do nothing: the check of an attempt that was not started."""


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

    def start(self, check: Callable[[History], None], is_protected: Callable[[], bool], *, joins: bool) -> None:
        """Begin, or begin again after an unclear end."""
        self.check, self.is_protected, self.joins, self.outcome = check, is_protected, joins, None

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
    files = _files(first)
    for attempt in waiting:
        if len(group) == GROUP_COUNT or files >= GROUP_FILES:
            break
        if attempt is first or not _may_join(attempt, group, history) or files + _files(attempt) > GROUP_FILES:
            continue
        try:
            attempt.check(history)
        except Exception as error:
            attempt.outcome = error
        else:
            group.append(attempt)
            files += _files(attempt)
    return group


def entry_of(group: Sequence[Attempt]) -> LogEntry:
    """Return the entry that decides these attempts: that of the only one, or a group."""
    time_ms = max(attempt.time_ms for attempt in group)
    if len(group) == 1:
        return replace(group[0].entry, time_ms=time_ms)
    return replace(LogEntry.group_of([each.entry for each in group], nonce=secrets.token_hex(16)), time_ms=time_ms)


def _files(attempt: Attempt) -> int:
    return len(attempt.entry.added) + len(attempt.entry.removed) + len(attempt.entry.fenced)


def _may_join(attempt: Attempt, group: list[Attempt], history: History) -> bool:
    entry = attempt.entry
    attempt.has_read(history.head)
    is_undecided = attempt.outcome is None and history.decided(entry.instant) is None
    if not attempt.joins or not is_undecided or entry.base < history.base:
        return False
    if attempt.unclear not in (None, history.head + 1):
        return False
    mine = {producer for producer, _ in entry.producers}
    if any(producer in mine for other in group for producer, _ in other.entry.producers):
        return False
    if entry.txn is not None and any(entry.txn == other.entry.txn for other in group):
        return False
    try:
        check_conflicts(entry, ((history.head + 1, other.entry) for other in group))
    except ConflictError:
        return False
    return True
