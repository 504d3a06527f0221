"""Rates of requests by key: a bucket for each, filled at a steady rate. Sync; times are passed in, in seconds."""

from collections import OrderedDict

KEYS_MAX = 10_000
"""Keys whose rate is remembered; the one that was used the longest time ago is forgotten first, and starts again."""


class Rates:
    """At most ``burst`` requests of one key at once, and ``per_s`` a second in the long run."""

    def __init__(self, per_s: float, burst: int) -> None:
        self._per_s = per_s
        self._burst = burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Requests left, and when that was."""

    def wait_s(self, key: str, now: float) -> float:
        """Count a request and return 0, or return the seconds after which another one may come, and count nothing."""
        left, since = self._left.pop(key, (float(self._burst), now))
        left = min(self._burst, left + (now - since) * self._per_s)
        is_allowed = left >= 1
        self._left[key] = (left - 1 if is_allowed else left), now
        if len(self._left) > KEYS_MAX:
            self._left.popitem(last=False)
        return 0.0 if is_allowed else (1 - left) / self._per_s
