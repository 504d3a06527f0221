"""The blocks that tasks of one job look up in this process: what one has asked for, the next need not ask for again.

What outlives a task is here: a cache, the knowledge that the service is out of use, and what was read of the log.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Literal

from tallymark.backends.contract import Backend
from tallymark.engine.lookups.cache import BlockCache, LogPosition
from tallymark.engine.lookups.fallback import Blocks, FallbackBlocks
from tallymark.engine.lookups.local_log import LogBlocks
from tallymark.engine.lookups.rate_limit import ReadingPace
from tallymark.engine.tasks.task_markers import service_client
from tallymark.engine.tasks.thread_loop import ThreadLoop
from tallymark.engine.tasks.ticket import WriteTicket


@dataclass(frozen=True, slots=True, kw_only=True)
class JobViewStatistics:
    """What was looked up of a job in this process so far, by whom it was answered, and what that took."""

    source: Literal["service", "log"]
    """Whom the next look-up waits for: ``log`` while the service is of no use, or where there is none."""
    partitions: int
    """Partitions that were asked for."""
    cached: int
    """Of these, those that were at hand."""
    by_service: int
    """Requests that the service has answered."""
    by_log: int
    """Requests that went to the log."""
    fallbacks: int
    """How often the service went out of use."""
    log_readings: int
    """How often the log was read."""
    cache_bytes: int
    """What is at hand, of all jobs."""


class JobBlocks:
    """Any thread may use it. Blocking."""

    def __init__(
        self,
        ticket: WriteTicket,
        open_storage: Callable[[], Backend],
        cache: BlockCache,
        pace: ReadingPace,
        *,
        place: str,
    ) -> None:
        """``place`` tells the table from all others."""
        settings = ticket.views
        self._ticket = ticket
        self._position: LogPosition = (place, ticket.base, ticket.base_hash)
        self._cache = cache
        self._new_log = partial(LogBlocks, ticket, open_storage, pace)
        self._lock = threading.Lock()
        self._by_log: _ByLog | None = None
        self._asked = self._cached = self._readings = 0
        service = _service_blocks(ticket)
        self._source = FallbackBlocks(
            service,
            self._blocks_by_log,
            instant=ticket.instant,
            wait_s=settings.wait_s,
            log_wait_s=settings.log_wait_s,
            pause_s=ticket.settings.service_pause_s,
            awaited=None if service is None else partial(service, is_awaited=True),
        )

    def blocks(self, partitions: Sequence[str]) -> Blocks:
        """Of each of these partitions. Raises what ``FallbackBlocks.blocks`` raises."""
        found = self._cache.found(self._position, partitions)
        missing = [partition for partition in dict.fromkeys(partitions) if partition not in found]
        with self._lock:
            self._asked += len(found) + len(missing)
            self._cached += len(found)
        if missing:
            asked = self._source.blocks(missing)
            self._cache.keep(self._position, asked, limit_bytes=self._ticket.views.cache_bytes)
            found |= asked
            if self._source.asks_service:
                self.forget_log()
        return found

    def statistics(self) -> JobViewStatistics:
        counts = self._source.counts
        return JobViewStatistics(
            source="service" if self._source.asks_service else "log",
            partitions=self._asked,
            cached=self._cached,
            by_service=counts.by_service,
            by_log=counts.by_log,
            fallbacks=counts.fallbacks,
            log_readings=self._readings + (self._by_log.log.readings if self._by_log else 0),
            cache_bytes=self._cache.bytes,
        )

    def forget_log(self) -> None:
        """Give back what was read of it, unless somebody waits for more; then the next call does."""
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
            answer = by_log.loop.start_soon(by_log.log.blocks, partitions)  # whose thread may want the lock meanwhile
        except BaseException:  # there is no such loop: the library that it needs is not here
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
    """What was read of the log, and the loop that it belongs to."""

    loop: ThreadLoop
    log: LogBlocks
    pending: int = 0
    """Look-ups under way."""


def _service_blocks(ticket: WriteTicket) -> "partial[Future[Blocks]] | None":
    if ticket.service is None or not ticket.views.serve:
        return None
    client = service_client(ticket, ticket.service)
    return partial(client.look_up, ticket.base, ticket.base_hash, wait_s=ticket.views.wait_s)
