"""The markers that share one flush, and those who wait for it."""

import anyio

from tallymark.engine.errors import TallymarkError


class MarkerBatch:
    """Grows while it waits for its flush; then it is flushed whole and settled once, for all who wait."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        """As they will stand in a segment."""
        self._begun_s = 0.0
        """When its first marker was asked for."""
        self._later_total_s = 0.0
        """By how much the others came later, summed."""
        self._settled = anyio.Event()
        self._error: TallymarkError | None = None

    def add(self, line: str, now: float) -> None:
        if not self.lines:
            self._begun_s = now
        self.lines.append(line)
        self._later_total_s += now - self._begun_s

    def mean_age_s(self, now: float) -> float:
        """Return how long ago its markers were asked for, in the mean."""
        return max(0.0, now - self._begun_s - self._later_total_s / len(self.lines))

    def settle(self, error: TallymarkError | None = None) -> None:
        """Let everybody know how it ended; without an error the batch is durable."""
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
