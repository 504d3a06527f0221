"""Markers on their way to storage: waiting for a flush, or in one.

Owns: the bound on both, and that a marker requested twice is sent once.
"""

from contextlib import suppress

import anyio

from tallymark.backends.events import EventLog
from tallymark.engine.errors import Overloaded, TallymarkError
from tallymark.engine.markers.batch import MarkerBatch

_events = EventLog(__name__)


class MarkerQueue:
    """Sync but for one wait; consistent between any two awaits."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._forming: MarkerBatch | None = None
        self._batch_of: dict[str, MarkerBatch] = {}
        self._arrival = anyio.Event()
        self._is_full = False
        """Whether it has refused a request, and has not been half empty since."""

    @property
    def waiting(self) -> int:
        """Markers that wait for a flush."""
        forming = self._forming  # another thread may ask, for metrics
        return len(forming.lines) if forming else 0

    @property
    def inflight(self) -> int:
        """Markers in a flush."""
        return max(0, len(self._batch_of) - self.waiting)

    def offer(self, lines: list[str], *, retry_after_s: float) -> list[MarkerBatch]:
        """Accept all the markers or none. Return the batches that contain them.

        Raises:
            Overloaded: the limit is reached; retry after ``retry_after_s``.
        """
        fresh = [line for line in dict.fromkeys(lines) if line not in self._batch_of]
        if len(self._batch_of) + len(fresh) > self._limit:
            if not self._is_full:
                self._is_full = True
                _events.warning("queue.filled", waiting=self.waiting, inflight=self.inflight, limit=self._limit)
            raise Overloaded(
                f"{len(self._batch_of)} markers wait or are in flight and {len(fresh)} more would pass "
                f"queue_limit={self._limit}; ask again later or for fewer",
                retry_after_s=retry_after_s,
            )
        for line in fresh:
            self._enqueue(line)
        return list(dict.fromkeys(self._batch_of[line] for line in lines))

    def __contains__(self, line: str) -> bool:
        return line in self._batch_of

    async def gather(self) -> None:
        """Return when something waits for a flush."""
        while self._forming is None:
            self._arrival = anyio.Event()
            await self._arrival.wait()

    def take(self) -> MarkerBatch | None:
        """Return all waiting markers as one batch; None if they were refused since."""
        batch, self._forming = self._forming, None
        return batch

    def settle(self, batch: MarkerBatch, error: TallymarkError | None = None) -> None:
        """End the batch's flush: its markers are no longer in flight, and its requests are answered."""
        for line in batch.lines:
            del self._batch_of[line]
        self._is_full = self._is_full and len(self._batch_of) * 2 > self._limit
        batch.settle(error)

    def refuse(self, error: TallymarkError) -> None:
        """Answer all that waits for a flush with the error. A batch in a flush is answered when that ends."""
        batch = self.take()
        if batch is not None:
            self.settle(batch, error)

    async def drained(self) -> None:
        """Return when every flush that is in flight now has ended, in the order of their starts, however it ended."""
        for batch in dict.fromkeys(self._batch_of.values()):
            with suppress(TallymarkError):
                await batch.wait()

    def _enqueue(self, line: str) -> None:
        if self._forming is None:
            self._forming = MarkerBatch()
            self._arrival.set()
        self._forming.lines.append(line)
        self._batch_of[line] = self._forming
