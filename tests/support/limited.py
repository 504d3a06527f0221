"""A store in memory that takes so many puts-if-absent a second and answers those beyond with the wish for fewer."""

import anyio

from tallymark.backends.errors import Throttled
from tallymark.backends.memory import MemoryBackend


class LimitedBackend(MemoryBackend):
    """A bucket of tokens, one a put, as stores keep one for each prefix."""

    def __init__(self, *, rate: float | None, burst: float = 1.0, put_s: float = 0.0, refusal_s: float = 0.0) -> None:
        """``rate``: puts a second, None for any number; ``burst`` of them may come at once. ``refusal_s`` is how long
        it takes to refuse one.
        """
        super().__init__()
        self.rate = rate
        """May be changed at any time."""
        self.started_s: list[float] = []
        """When each put was begun."""
        self.allowed = 0
        self._burst = self._tokens = burst
        self.put_s = put_s
        self._refusal_s = refusal_s
        self._filled_s = 0.0

    @property
    def tried(self) -> int:
        return len(self.started_s)

    async def put_new(self, path: str, data: bytes) -> None:
        now = anyio.current_time()
        self.started_s.append(now)
        if not self._is_allowed(now):
            await anyio.sleep(self._refusal_s)
            raise Throttled("503 SlowDown")
        self.allowed += 1
        await anyio.sleep(self.put_s)
        await super().put_new(path, data)

    def _is_allowed(self, now: float) -> bool:
        if self.rate is None:
            return True
        self._tokens = min(self._burst, self._tokens + (now - self._filled_s) * self.rate)
        self._filled_s = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
