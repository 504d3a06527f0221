"""Circuit breaker: whether a job's service is unreachable for this process. Sync; times are passed in, in seconds."""

import threading


class Outage:
    """Starts when a wait for the service was unsuccessful, and ends with its next response.

    One for all tasks of a job in one process, used from any thread: a time limit that one task has waited for is not
    waited for again. While it lasts, one request in every ``pause_s`` is sent to the service nevertheless.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next_try_at: float | None = None

    @property
    def is_on(self) -> bool:
        return self._next_try_at is not None

    def begin(self, now: float, *, pause_s: float) -> bool:
        """Record that the service did not answer in time; return whether that is news."""
        with self._lock:
            is_news = self._next_try_at is None
            self._next_try_at = now + pause_s
            return is_news

    def end(self) -> bool:
        """Record that the service has answered; return whether that is news."""
        with self._lock:
            is_news = self._next_try_at is not None
            self._next_try_at = None
            return is_news

    def is_try_due(self, now: float, *, pause_s: float) -> bool:
        """Return True to one caller in every ``pause_s`` of an outage."""
        with self._lock:
            if self._next_try_at is None or now < self._next_try_at:
                return False
            self._next_try_at = now + pause_s
            return True
