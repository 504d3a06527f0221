"""Blocks of partitions from the job's service, or by the log while the service is of no use.

Owns: when to fall back and when to return. Does not own: connections, event loops, storage: it is made of futures.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from tallymark.backends.events import EventLog
from tallymark.engine.errors import InvalidRequest, ServiceUnavailable, TallymarkError
from tallymark.engine.rpc.circuit_breaker import Outage

Blocks = dict[str, bytes]
"""By partition."""

BlocksOf = Callable[[Sequence[str]], Future[Blocks]]
"""Asks for the blocks of these partitions and returns at once; the future settles within a bound of its own."""

_GRACE = 1.2
"""A future's own error says more than ours: it may be late by as much."""

_events = EventLog(__name__)


@dataclass(slots=True)
class BlockCounts:
    by_service: int = 0
    """Look-ups that the service has answered."""
    by_log: int = 0
    """Look-ups that went to the log."""
    fallbacks: int = 0
    """How often the service went out of use."""


class FallbackBlocks:
    """Blocking; any thread may use it.

    Whatever the service answers but blocks, or that its job has ended, makes it fall back: nobody was there in time
    (ServiceUnavailable), the other side is of another release (NotAuthenticated), or it does not answer for that
    position, or for that log (InvalidRequest). The log is what the service itself goes by: it gives the same answer, or
    an error. While the service is of no use nobody waits for it; every ``pause_s`` one look-up goes there, too.
    """

    def __init__(
        self,
        service: BlocksOf | None,
        log: BlocksOf,
        *,
        instant: str,
        wait_s: float,
        log_wait_s: float,
        pause_s: float,
        awaited: BlocksOf | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``service``: None where the job's answers no look-ups. ``awaited``: the same where the caller waits for the
        answer next, so that it need not return at once; None: no other. ``instant`` is for the log of events.
        """
        self._service = service
        self._awaited = awaited or service
        self._log = log
        self._instant = instant
        self._wait_s = wait_s
        self._log_wait_s = log_wait_s
        self._pause_s = pause_s
        self._monotonic = monotonic
        self._outage = Outage()
        self.counts = BlockCounts()

    @property
    def asks_service(self) -> bool:
        """Whether the next look-up waits for the service."""
        return self._service is not None and not self._outage.is_on

    def blocks(self, partitions: Sequence[str]) -> Blocks:
        """Of each of these partitions.

        Raises:
            Stopped: the job is over.
            CorruptObject, ServiceUnavailable, BackendError: the service is of no use, and the log cannot be read.
        """
        if self._service is None or self._awaited is None:
            return self._by_log(partitions)
        if self._outage.is_on:
            if self._outage.is_try_due(self._monotonic(), pause_s=self._pause_s):
                self._service(partitions).add_done_callback(self._tried)
            return self._by_log(partitions)
        try:
            found = _within(self._awaited(partitions), self._wait_s)
        except (ServiceUnavailable, InvalidRequest) as error:
            self._missed(error)
            return self._by_log(partitions)
        self.counts.by_service += 1
        return found

    def _by_log(self, partitions: Sequence[str]) -> Blocks:
        self.counts.by_log += 1
        return _within(self._log(partitions), self._log_wait_s)

    def _missed(self, error: TallymarkError) -> None:
        if self._outage.begin(self._monotonic(), pause_s=self._pause_s):
            self.counts.fallbacks += 1
            _events.warning("view.fallback", instant=self._instant, reason=error)

    def _tried(self, answer: Future[Blocks]) -> None:
        if answer.exception() is None and self._outage.end():
            _events.info("view.returned", instant=self._instant)


def _within(answer: Future[Blocks], wait_s: float) -> Blocks:
    try:
        return answer.result(wait_s * _GRACE)
    except TimeoutError as error:
        raise ServiceUnavailable(f"a look-up had no answer within {wait_s:g} s, nor an error") from error
