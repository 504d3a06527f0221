"""When the next flush may start (paced group commit).

A request that finds the directory idle is flushed at once; under load a flush starts every interval and takes all that
waits. For a given rate of puts no policy has a lower mean wait: waits are shortest when gaps are equal.
"""

from typing import Literal

PUTS_PER_PUT_TIME = 4
"""``auto`` starts this many flushes in the time of one put: mean wait beyond the put is 1/8 of it at most."""

SMOOTHING = 0.1
"""Weight of the newest put in the measured mean: it follows a store whose latency changes within some twenty puts."""


class Pace:
    """Sync and pure: it is told the time, in seconds of a monotonic clock."""

    def __init__(self, interval_s: float | Literal["auto"]) -> None:
        self._fixed_s = None if interval_s == "auto" else interval_s
        self._put_s: float | None = None
        self._last_start = float("-inf")

    @property
    def interval_s(self) -> float:
        """The least time between the starts of two flushes; 0 with ``auto`` until a put was measured."""
        return (self._put_s or 0.0) / PUTS_PER_PUT_TIME if self._fixed_s is None else self._fixed_s

    @property
    def put_s(self) -> float | None:
        """The measured mean of a put."""
        return self._put_s

    def delay_s(self, now: float) -> float:
        return max(0.0, self._last_start + self.interval_s - now)

    def started(self, now: float) -> None:
        self._last_start = now

    def measured(self, put_s: float) -> None:
        self._put_s = put_s if self._put_s is None else self._put_s + SMOOTHING * (put_s - self._put_s)
