"""Markers that share one flush, and the requests that wait for it."""

import anyio

from tallymark.engine.errors import TallymarkError


class MarkerBatch:
    """Grows until its flush starts; then it is flushed whole and settled once, for all requests."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        """In the form in which a segment stores them."""
        self._settled = anyio.Event()
        self._error: TallymarkError | None = None

    def settle(self, error: TallymarkError | None = None) -> None:
        """End all waits; without an error the batch is durable."""
        assert not self._settled.is_set()
        self._error = error
        self._settled.set()

    async def wait(self) -> None:
        """Return once the batch is durable. Raises what it failed with."""
        await self._settled.wait()
        if self._error is not None:
            raise type(self._error)(*self._error.args) from self._error

    def __repr__(self) -> str:
        return f"<MarkerBatch {len(self.lines)} markers{' settled' if self._settled.is_set() else ''}>"
