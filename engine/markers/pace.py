"""When the next flush may start (paced group commit).

A request that finds the directory idle is flushed at once; under load a flush starts every interval and takes all that
waits. For a given rate of puts no policy has a lower mean wait: waits are shortest when gaps are equal.

Where the store asks for fewer requests the interval is doubled, and shrinks again with each good put; batches grow and
shrink with it. Repeats of puts that were throttled keep the same intervals (``slot_s``), so that all that a directory
asks of the store, however much waits, is one put an interval.
"""

from typing import Literal

PUTS_PER_PUT_TIME = 4
"""``auto`` starts this many flushes in the time of one put: mean wait beyond the put is 1/8 of it at most."""

SMOOTHING = 0.1
"""Weight of the newest put in the measured mean: it follows a store whose latency changes within some twenty puts."""

LENGTHENING = 2.0
"""What throttling does to the interval, once in the time that it takes to see what that has helped."""

SHORTENING = 0.95
"""What a good put does to an interval that throttling has lengthened. With the above, a store that allows a steady rate
throttles one put in 15: there are ln 2 / -ln 0.95 = 13.5 good ones between two."""

HELD_LEAST_S = 0.001
"""What an interval of 0 is doubled from, and below which a lengthened one is forgotten."""


class Pace:
    """Sync and pure: it is told the time, in seconds of a monotonic clock."""

    def __init__(self, interval_s: float | Literal["auto"], *, throttled_max_s: float = 5.0) -> None:
        """``throttled_max_s``: throttling lengthens the interval no further."""
        self._fixed_s = None if interval_s == "auto" else interval_s
        self._throttled_max_s = throttled_max_s
        self._put_s: float | None = None
        self._expected_s = 0.0
        self._held_s = 0.0
        self._lengthened_at = self._throttled_at = self._last_start = float("-inf")

    @property
    def interval_s(self) -> float:
        """The least time between the starts of two flushes; with ``auto`` 0 until a put was timed."""
        return max(self._unheld_s, self._held_s)

    @property
    def put_s(self) -> float | None:
        """The measured mean of a put."""
        return self._put_s

    @property
    def is_held(self) -> bool:
        """Whether throttling has made the interval longer than it would be."""
        return self._held_s > self._unheld_s

    def delay_s(self, now: float) -> float:
        return max(0.0, self._last_start + self.interval_s - now)

    def started(self, now: float) -> None:
        self._last_start = now

    def slot_s(self, now: float) -> float:
        """How long until a repeat may be sent, which is taken for a start then."""
        delay_s = self.delay_s(now)
        self.started(now + delay_s)
        return delay_s

    def expected(self, put_s: float) -> None:
        """A put of the same size took this long: better than nothing, until a flush was measured."""
        self._expected_s = put_s

    def measured(self, put_s: float, *, started: float) -> None:
        """A flush that began at ``started`` is durable, after ``put_s``.

        One during which the store throttled says how long that kept it, not how long a put takes.
        """
        if started < self._throttled_at:
            return
        self._put_s = put_s if self._put_s is None else self._put_s + SMOOTHING * (put_s - self._put_s)
        self._held_s *= SHORTENING
        if self._held_s < max(HELD_LEAST_S, self._unheld_s):
            self._held_s = 0.0

    def throttled(self, now: float) -> bool:
        """The store asks for fewer requests. Whether that makes the interval longer."""
        self._throttled_at = now
        if now < self._lengthened_at + self.interval_s + (self._put_s or 0.0):
            return False
        longer_s = max(HELD_LEAST_S, LENGTHENING * self.interval_s)
        self._held_s = min(longer_s, max(self._throttled_max_s, self._unheld_s))
        self._lengthened_at = now
        return True

    @property
    def _unheld_s(self) -> float:
        put_s = self._expected_s if self._put_s is None else self._put_s
        return put_s / PUTS_PER_PUT_TIME if self._fixed_s is None else self._fixed_s
