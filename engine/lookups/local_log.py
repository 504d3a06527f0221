"""Blocks of partitions read from the commit log itself, at a limited rate, for a process without its job's service."""

import threading
from collections import deque
from collections.abc import Callable, Iterable

import anyio

from tallymark.backends.contract import Backend
from tallymark.backends.events import EventLog
from tallymark.engine.errors import ServiceUnavailable
from tallymark.engine.lazy import Lazy
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.views.open import open_store
from tallymark.engine.views.view import View
from tallymark.engine.views.view_until import view_until

MINUTE_S = 60.0


class ReadingPace:
    """Limit of log readings, one for all jobs that a process has tasks of. Thread-safe."""

    def __init__(self, *, monotonic: Callable[[], float], random: Callable[[], float]) -> None:
        """``random`` returns numbers from 0 to below 1."""
        self._monotonic = monotonic
        self._random = random
        self._lock = threading.Lock()
        self._begun: deque[float] = deque()
        """Start times of the readings of the last minute, and of those to come."""

    def admit(self, *, count_a_minute: int, jitter_s: float, patience_s: float) -> float:
        """Count one more reading. Return the seconds to wait before it starts.

        Raises:
            ServiceUnavailable: that would be longer than ``patience_s``. Nothing is counted.
        """
        with self._lock:
            now = self._monotonic()
            while self._begun and self._begun[0] <= now - MINUTE_S:
                self._begun.popleft()
            spread_s = self._random() * jitter_s
            free_at = self._begun[-count_a_minute] + MINUTE_S if len(self._begun) >= count_a_minute else now
            wait_s = max(free_at - now, 0.0) + spread_s
            if wait_s > patience_s:
                raise ServiceUnavailable(
                    f"the service is of no use, and this process has begun to read the log {len(self._begun)} times "
                    f"within a minute (ViewSettings.log_readings={count_a_minute}); the log has the outcome of each"
                )
            self._begun.append(now + wait_s)
            return wait_s


_events = EventLog(__name__)


class LogBlocks:
    """Belongs to one event loop. Concurrent queries share one reading, and its failure."""

    def __init__(self, ticket: WriteTicket, open_storage: Callable[[], Backend], pace: ReadingPace) -> None:
        """``open_storage`` is called on the first use; it opens the ticket's storage."""
        self._ticket = ticket
        self._settings = ticket.views
        self._open_storage = open_storage
        self._pace = pace
        self._view = Lazy(self._read)
        self._made: View | None = None
        self.readings = 0
        """Number of readings of the log that were started."""

    async def blocks(self, partitions: Iterable[str]) -> dict[str, bytes]:
        """Return the blocks by partition, within ``ViewSettings.log_wait_s``.

        Raises:
            CorruptObject: the log cannot be read, or is not the one that the job started with.
            ServiceUnavailable: it was not read in time, or too often already.
            BackendError: storage did not answer.
        """
        wait_s = self._settings.log_wait_s
        try:
            with anyio.fail_after(wait_s):
                at = (await self._view.get()).at(self._ticket.base)
                return {partition: await at.block(partition) for partition in partitions}
        except TimeoutError as error:
            raise ServiceUnavailable(
                f"the service is of no use, and the log of {self._ticket.url} was not read within {wait_s:g} s "
                "(ViewSettings.log_wait_s)"
            ) from error

    async def close(self) -> None:
        """Release the view of the log. No queries may follow."""
        if self._made is not None:
            self._made.close()

    async def _read(self) -> View:
        settings, ticket = self._settings, self._ticket
        pause_s = self._pace.admit(
            count_a_minute=settings.log_readings, jitter_s=settings.log_jitter_s, patience_s=settings.log_wait_s
        )
        await anyio.sleep(pause_s)
        self.readings += 1
        started = anyio.current_time()
        store = open_store(settings)
        try:
            view = await view_until(self._open_storage(), ticket.base, ticket.base_hash, store, table=ticket.table)
        except BaseException:
            store.close()
            raise
        self._made = view
        _events.info(
            "view.read",
            instant=ticket.instant,
            position=ticket.base,
            partitions=len(view.states),
            seconds=anyio.current_time() - started,
        )
        return view
