"""How often a process reads a log for want of its job's service, and when it begins: storage is not to be stormed."""

import threading
from collections import deque
from collections.abc import Callable

from tallymark.engine.errors import ServiceUnavailable

MINUTE_S = 60.0


class ReadingPace:
    """One for all jobs that a process has tasks of. Any thread may use it."""

    def __init__(self, *, monotonic: Callable[[], float], random: Callable[[], float]) -> None:
        """``random`` returns numbers from 0 to below 1."""
        self._monotonic = monotonic
        self._random = random
        self._lock = threading.Lock()
        self._begun: deque[float] = deque()
        """When the readings of the last minute began, or are to begin."""

    def admit(self, *, count_a_minute: int, jitter_s: float, patience_s: float) -> float:
        """Count one more reading. Returns how long, in seconds, it is to wait before it begins.

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
                    f"within a minute (ViewSettings.log_readings={count_a_minute}); what came of it was told each time"
                )
            self._begun.append(now + wait_s)
            return wait_s
