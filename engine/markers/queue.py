"""Markers on their way to storage: those that wait for a flush, and those in one.

Owns: the bound on both, and that a name asked for twice travels once.
"""

from contextlib import suppress

import anyio

from tallymark.engine.errors import Overloaded, TallymarkError
from tallymark.engine.markers.batch import MarkerBatch
from tallymark.engine.markers.name import MarkerName


class MarkerQueue:
    """Sync but for one wait; between two awaits it is whole."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._forming: MarkerBatch | None = None
        self._batch_of: dict[MarkerName, MarkerBatch] = {}
        self._arrival = anyio.Event()

    @property
    def waiting(self) -> int:
        """Names that wait for a flush."""
        return len(self._forming.names) if self._forming else 0

    @property
    def inflight(self) -> int:
        """Names in a flush."""
        return len(self._batch_of) - self.waiting

    def offer(self, names: list[MarkerName], *, retry_after_s: float) -> list[MarkerBatch]:
        """Take all the names or none. Returns the batches that they travel in.

        Raises:
            Overloaded: the limit is reached; come back after ``retry_after_s``.
        """
        fresh = [name for name in dict.fromkeys(names) if name not in self._batch_of]
        if len(self._batch_of) + len(fresh) > self._limit:
            raise Overloaded(
                f"{len(self._batch_of)} markers wait or are in flight and {len(fresh)} more would pass "
                f"queue_limit={self._limit}; ask again later or for fewer",
                retry_after_s=retry_after_s,
            )
        for name in fresh:
            self._enqueue(name)
        return list(dict.fromkeys(self._batch_of[name] for name in names))

    def __contains__(self, name: MarkerName) -> bool:
        return name in self._batch_of

    async def gather(self) -> None:
        """Return when something waits for a flush."""
        while self._forming is None:
            self._arrival = anyio.Event()
            await self._arrival.wait()

    def take(self) -> MarkerBatch | None:
        """All that waits, as one batch; None if it was refused meanwhile."""
        batch, self._forming = self._forming, None
        return batch

    def settle(self, batch: MarkerBatch, error: TallymarkError | None = None) -> None:
        """The batch's flush has ended: its names are on their way no more, and its requesters are answered."""
        for name in batch.names:
            del self._batch_of[name]
        batch.settle(error)

    def refuse(self, error: TallymarkError) -> None:
        """Answer all that waits for a flush, unflushed. What is in a flush is answered at its end."""
        batch = self.take()
        if batch is not None:
            self.settle(batch, error)

    async def drained(self) -> None:
        """Return when every flush that is in flight now has ended, however it ended."""
        for batch in set(self._batch_of.values()):
            with suppress(TallymarkError):
                await batch.wait()

    def _enqueue(self, name: MarkerName) -> None:
        if self._forming is None:
            self._forming = MarkerBatch()
            self._arrival.set()
        self._forming.names.append(name)
        self._batch_of[name] = self._forming
