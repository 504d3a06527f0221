"""Blocks that the tasks of one job look up in this process: from its service, or from the log during an outage."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Literal

from tallymark.backends.contract import Backend
from tallymark.backends.events import EventLog
from tallymark.engine.errors import InvalidRequest, ServiceUnavailable, TallymarkError
from tallymark.engine.lookups.cache import BlockCache, LogPosition
from tallymark.engine.lookups.local_log import LogBlocks, ReadingPace
from tallymark.engine.rpc.circuit_breaker import Outage
from tallymark.engine.tasks.event_loops import ThreadLoop
from tallymark.engine.tasks.marker_sources import service_client
from tallymark.engine.tasks.ticket import WriteTicket

Blocks = dict[str, bytes]
"""Blocks by partition."""

BlocksOf = Callable[[Sequence[str]], Future[Blocks]]
"""Requests the blocks of these partitions and returns at once; the future settles within its own time limit."""

_GRACE = 1.2
"""Extra time for a future, whose own error is more precise than a timeout here."""

_events = EventLog(__name__)


@dataclass(slots=True)
class BlockCounts:
    by_service: int = 0
    """Lookups that the service has answered."""
    by_log: int = 0
    """Lookups that were answered from the log."""
    fallbacks: int = 0
    """How often the service became unusable."""


class FallbackBlocks:
    """Lookups with the service, and with the log while the service is unusable. Blocking; thread-safe.

    Every response of the service except blocks, and except the end of its job, makes it unusable: no response in time
    (ServiceUnavailable), a peer of another release (NotAuthenticated), or a refusal of that position or log
    (InvalidRequest). The service itself reads the log: the log gives the same answer, or an error. During an outage no
    caller waits for the service; every ``pause_s`` one lookup is sent there as well.
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
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``service``: None where the job's service answers no lookups. ``instant`` is for log events."""
        self._service = service
        self._log = log
        self._instant = instant
        self._wait_s = wait_s
        self._log_wait_s = log_wait_s
        self._pause_s = pause_s
        self._monotonic = monotonic
        self._outage = Outage()
        self.counts = BlockCounts()

    @property
    def uses_service(self) -> bool:
        """Whether the next lookup waits for the service."""
        return self._service is not None and not self._outage.is_on

    def blocks(self, partitions: Sequence[str]) -> Blocks:
        """Return the blocks of these partitions.

        Raises:
            Stopped: the job is over.
            CorruptObject, ServiceUnavailable, BackendError: the service is unusable, and the log cannot be read.
        """
        if self._service is None:
            return self._by_log(partitions)
        if self._outage.is_on:
            if self._outage.is_try_due(self._monotonic(), pause_s=self._pause_s):
                self._service(partitions).add_done_callback(self._tried)
            return self._by_log(partitions)
        try:
            found = _within(self._service(partitions), self._wait_s)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class JobViewStatistics:
    """Lookups of a job in this process so far: their number, their source, and their times."""

    source: Literal["service", "log"]
    """What the next lookup uses: ``log`` while the service is unusable, or where there is none."""
    partitions: int
    """Partitions that were requested."""
    cached: int
    """Of these, those that were in the cache."""
    by_service: int
    """Requests that the service has answered."""
    by_log: int
    """Requests that were answered from the log."""
    fallbacks: int
    """How often the service became unusable."""
    log_readings: int
    """How often the log was read."""
    cache_bytes: int
    """Size of the cache, for all jobs."""


class JobBlocks:
    """Thread-safe. Blocking."""

    def __init__(
        self,
        ticket: WriteTicket,
        open_storage: Callable[[], Backend],
        cache: BlockCache,
        pace: ReadingPace,
        *,
        place: str,
    ) -> None:
        """``place`` identifies the table."""
        settings = ticket.views
        self._ticket = ticket
        self._position: LogPosition = (place, ticket.base, ticket.base_hash)
        self._cache = cache
        self._new_log = partial(LogBlocks, ticket, open_storage, pace)
        self._lock = threading.Lock()
        self._by_log: _ByLog | None = None
        self._asked = self._cached = self._readings = 0
        self._source = FallbackBlocks(
            _service_blocks(ticket),
            self._blocks_by_log,
            instant=ticket.instant,
            wait_s=settings.wait_s,
            log_wait_s=settings.log_wait_s,
            pause_s=ticket.settings.service_pause_s,
        )

    def blocks(self, partitions: Sequence[str]) -> Blocks:
        """Return the blocks of these partitions. Raises what ``FallbackBlocks.blocks`` raises."""
        found = self._cache.found(self._position, partitions)
        missing = [partition for partition in dict.fromkeys(partitions) if partition not in found]
        with self._lock:
            self._asked += len(found) + len(missing)
            self._cached += len(found)
        if missing:
            asked = self._source.blocks(missing)
            self._cache.keep(self._position, asked, limit_bytes=self._ticket.views.cache_bytes)
            found |= asked
            if self._source.uses_service:
                self.forget_log()
        return found

    def statistics(self) -> JobViewStatistics:
        counts = self._source.counts
        return JobViewStatistics(
            source="service" if self._source.uses_service else "log",
            partitions=self._asked,
            cached=self._cached,
            by_service=counts.by_service,
            by_log=counts.by_log,
            fallbacks=counts.fallbacks,
            log_readings=self._readings + (self._by_log.log.readings if self._by_log else 0),
            cache_bytes=self._cache.bytes,
        )

    def forget_log(self) -> None:
        """Release the view of the log unless a lookup uses it; then the next call does."""
        with self._lock:
            given_up = self._by_log
            if given_up is None or given_up.pending:
                return
            self._by_log = None
            self._readings += given_up.log.readings
        given_up.loop.stop(given_up.log.close)

    def _blocks_by_log(self, partitions: Sequence[str]) -> Future[Blocks]:
        with self._lock:
            if self._by_log is None:
                self._by_log = _ByLog(ThreadLoop(f"tallymark view {self._ticket.instant}"), self._new_log())
            by_log = self._by_log
            by_log.pending += 1
        try:
            answer = by_log.loop.start_soon(by_log.log.blocks, partitions)  # its thread may need the lock
        except BaseException:  # the loop cannot run: the library that it needs is missing
            with self._lock:
                self._by_log = None
            raise
        answer.add_done_callback(partial(self._answered, by_log))
        return answer

    def _answered(self, by_log: "_ByLog", _: Future[Blocks]) -> None:
        with self._lock:
            by_log.pending -= 1


@dataclass(slots=True, eq=False)
class _ByLog:
    """The view of the log, and the loop that it belongs to."""

    loop: ThreadLoop
    log: LogBlocks
    pending: int = 0
    """Lookups in flight."""


def _service_blocks(ticket: WriteTicket) -> "partial[Future[Blocks]] | None":
    if ticket.service is None or not ticket.views.serve:
        return None
    client = service_client(ticket, ticket.service)
    return partial(client.look_up, ticket.base, ticket.base_hash, wait_s=ticket.views.wait_s)
