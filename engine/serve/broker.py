"""Broker of one table's commits: those of several processes that wait are decided by one entry of the log.

It holds no truth, and no lease. A writer whose commit it has decided checks that its own lease has lasted until then;
one that gets no answer reads the log, and commits by itself (``rpc.commit_broker``). Both may put the entry: an
instant's first decision counts, and neither puts one before it has read all entries before that position.
"""

from collections.abc import Sequence
from functools import partial

from tallymark.backends.contract import Backend
from tallymark.backends.errors import TallymarkError, Unavailable
from tallymark.engine.errors import CommitUnknown, InvalidRequest, TableReplaced
from tallymark.engine.jobs.commit_check import check_commit
from tallymark.engine.rpc.messages import Commit
from tallymark.engine.serve.memory import LogBytes
from tallymark.engine.settings import CommitSettings
from tallymark.engine.timeline.entry import LogEntry, check_features, decode_entry
from tallymark.engine.timeline.group import Proposal
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.log import CommitLog
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.views.checkpoint_reader import Checkpoints

ENTRIES_KEPT = 128
"""Newest entries that are kept in memory: commits that replace files are compared with those since they have begun, and
read older ones again.
"""

DECIDED_MAX = 200_000
"""Instants that are known before the log is read again, from a checkpoint on, without those that are archived: some
60 MB.
"""

DECIDED_BYTES = 300
"""Of an instant that was decided."""

LINGER = 0.2
"""Part of a put's time in which writers that were answered may bring their next commit before another entry is put:
with 16 writers that commit again at once, all are in each entry, instead of half of them, and the median wait is 1.3
puts instead of 2.3.
"""


class Broker:
    """Belongs to one event loop. Has no task."""

    def __init__(self, backend: Backend, properties: TableProperties) -> None:
        self._backend = backend
        self._properties = properties
        self._open()

    def _open(self) -> None:
        """Start without anything of the log. What is being decided goes on with the log as it was read before."""
        self._log = CommitLog(self._backend, CommitSettings(), start=Checkpoints(self._backend), linger=LINGER)
        self._log.identify(self._properties.id, self._properties.writer_features)
        self._log_bytes = LogBytes(self._log)

    @property
    def memory_bytes(self) -> int:
        """Estimate of what the log uses."""
        return self._log_bytes.now() + DECIDED_BYTES * self._log.history.decided_count

    async def commit(self, requests: Sequence[Commit]) -> list[int | TallymarkError]:
        """Return of each commit its position in the log, or one of these errors.

            InvalidRequest                 the log does not take it, for this reason
            Unavailable, CommitUnknown     storage did not answer

        Raises:
            TableReplaced: they are of another table, or the log is another one than was read.
        """
        log = self._log
        outcomes: dict[int, int | TallymarkError] = {}
        proposals: dict[int, Proposal] = {}
        for number, request in enumerate(requests):
            try:
                entry = self._entry_of(request)
            except InvalidRequest as error:
                outcomes[number] = error
            else:
                proposals[number] = Proposal(entry, partial(_check, entry, request), lambda: True, joins=True)
        try:
            if not log.is_open or log.history.head < max(request.position for request in requests):
                await log.refresh()
            won = await log.win_all([*proposals.values()])
        finally:
            self._forget()
        outcomes.update(zip(proposals, map(_as_outcome, won), strict=True))
        return [outcomes[number] for number in range(len(requests))]

    def _entry_of(self, request: Commit) -> LogEntry:
        """Return the entry of a request that this release understands as a whole."""
        source = "the request for a commit"
        try:
            entry = decode_entry(request.entry, source=source)
            check_features("reader", entry.reader_features, source=source)
            check_features("writer", entry.writer_features, source=source)
        except TallymarkError as error:
            raise InvalidRequest(str(error)) from error
        if entry.table != self._properties.id:
            raise TableReplaced(f"{source} is of table {entry.table!r}, and {self._backend.url} is now another one")
        if entry.kind != "commit" or entry.unknown or len(entry.producers) != len(request.firsts):
            raise InvalidRequest(f"{source} has what this release does not know; run one release everywhere")
        return entry

    def _forget(self) -> None:
        history = self._log.history
        if history.decided_count > DECIDED_MAX:
            self._open()
        elif history.head - history.base > 2 * ENTRIES_KEPT:
            history.forget(history.head - ENTRIES_KEPT)


def _as_outcome(won: int | Exception) -> int | TallymarkError:
    """Return the writer's outcome. Raises faults, and TableReplaced."""
    if isinstance(won, int | Unavailable | CommitUnknown | InvalidRequest):
        return won
    if isinstance(won, TableReplaced) or not isinstance(won, TallymarkError):
        raise won
    return InvalidRequest(f"{type(won).__name__}: {won}")


def _check(entry: LogEntry, request: Commit, history: History) -> None:
    """Check that the history continues what the writer has read, and that the entry may follow it.

    What the writer has read is younger than its reservation, which keeps what comes after it from being archived.
    """
    position = request.position
    if not history.hashed_from <= position <= history.head or history.hash_at(position) != request.hash:
        raise InvalidRequest(f"position {position} is not one of the log that this service has read")
    check_commit(entry, request.firsts, history)
