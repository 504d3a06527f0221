"""Durations of the last puts, each hedged copy separately."""

from bisect import bisect_left, insort
from collections import deque

RECENT_COUNT = 256
"""Puts that are remembered: 13 of them lie above the 95th percentile. A store that becomes slower moves it within as
many puts."""


class PutTimes:
    """Sync and small: adding one costs some microseconds."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque()
        self._sorted: list[float] = []

    def add(self, seconds: float) -> None:
        if len(self._recent) == RECENT_COUNT:
            oldest = self._recent.popleft()
            del self._sorted[bisect_left(self._sorted, oldest)]
        self._recent.append(seconds)
        insort(self._sorted, seconds)

    def quantile_s(self, share: float) -> float | None:
        """Return the smallest of the recent times that this share of them does not exceed; None before the first."""
        if not self._sorted:
            return None
        return self._sorted[min(len(self._sorted) - 1, int(share * len(self._sorted)))]
