"""Pace of flushes: the earliest start of the next one (paced group commit).

A request that finds the directory idle is flushed at once. Under load a flush starts at every interval and takes all
waiting requests. For a given rate of puts no policy has a lower mean wait: waits are shortest when gaps are equal.

Timers of event loops fire up to a millisecond late, which is more than an interval where puts are quick. No flush waits
for a timer whose lateness would exceed the earliness of an immediate start. A start that was late, or early, counts
from the time at which it was due: so the number of flushes is the one that the interval prescribes.

With ``auto`` a flush starts every quarter of a put, but one at a time where puts are quick: there the store shares
processors and disk with this process, and concurrent flushes delay each other (docs/decisions/0029).

Where the store asks for fewer requests the interval is lengthened by half, and shrinks again with each good put;
batches grow and shrink with it. Repeats of throttled puts keep the same intervals, so that a directory sends one put
per interval in all, however much waits. Where a backend repeats such puts by itself, its pauses are added, and less of
the store's allowance is used.
"""

from bisect import bisect_left, insort
from collections import deque
from typing import Literal

PUTS_PER_PUT_TIME = 4
"""``auto`` starts this many flushes in the time of one put: the mean wait beyond the put is at most 1/8 of it."""

QUICK_MEDIAN_S = 0.005
"""A store with a shorter median put is in this machine or beside it."""

RECENT_COUNT = 256
"""Number of remembered puts: 13 of them are above the 95th percentile. A store that becomes slower moves it within as
many puts.
"""

SMOOTHING = 0.1
"""Weight of the newest put in the measured mean, which follows a store whose latency changes within about
twenty puts.
"""

LENGTHENING = 1.5
"""Factor of the interval when the store throttles. Later answers show whether that was enough."""

HALVING_PUTS = 20
HALVING_S = 10.0
"""Good puts, or time, after which an interval lengthened by throttling is halved towards the normal one, whichever is
first. Where a store allows a steady rate, the interval thus varies between what it allows and half as much again. Of
five puts a second or more three quarters are used, and one put in 13 is throttled; of one a second seven tenths, and
one in six (simulated).
"""

LATE_MAX_S = 0.002
"""A start later than this is not the timer's fault: the coarsest timers in use count in milliseconds."""

LENGTHENED_LEAST_S = 0.001
"""The value that an interval of 0 is lengthened to, and below which a lengthened one is reset."""


class PutTimes:
    """Durations of the last puts. Adding one takes a few microseconds."""

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


class Pace:
    """Sync and pure: times are arguments, in seconds of a monotonic clock."""

    def __init__(self, interval_s: float | Literal["auto"], *, throttled_max_s: float = 5.0) -> None:
        """``throttled_max_s``: throttling lengthens the interval no further."""
        self._fixed_s = None if interval_s == "auto" else interval_s
        self._throttled_max_s = throttled_max_s
        self._put_s: float | None = None
        self._times = PutTimes()
        self._expected_s = 0.0
        self._lengthened_s = 0.0
        self._lengthened_at = self._throttled_at = self._last_start = float("-inf")
        self._is_waited_for = False
        self._timer_late_s = 0.0

    @property
    def interval_s(self) -> float:
        """The least time between the starts of two flushes; with ``auto`` 0 until a put was measured."""
        return max(self._unlengthened_s, self._lengthened_s)

    @property
    def put_s(self) -> float | None:
        """The measured mean of a put."""
        return self._put_s

    @property
    def is_lengthened(self) -> bool:
        """Whether throttling has made the interval longer than normal."""
        return self._lengthened_s > self._unlengthened_s

    @property
    def is_one_at_a_time(self) -> bool:
        """Whether the next flush starts after the end of the last one."""
        if self._fixed_s is not None:
            return False
        median_s = self._times.quantile_s(0.5)
        return (self._expected_s if median_s is None else median_s) < QUICK_MEDIAN_S

    def delay_s(self, now: float) -> float:
        """Return how long the next flush has to wait. To be called only when there is something to flush."""
        delay_s = self._last_start + self.interval_s - now
        if delay_s <= self._timer_late_s:
            return 0.0
        self._is_waited_for = True
        return delay_s

    def started(self, now: float) -> None:
        due = self._last_start + self.interval_s
        if self._is_waited_for:
            late_s = min(max(0.0, now - due), LATE_MAX_S)
            self._timer_late_s += SMOOTHING * (late_s - self._timer_late_s)
        self._last_start = max(due, now - self.interval_s) if self._is_waited_for or due > now else now
        self._is_waited_for = False

    def expected(self, put_s: float) -> None:
        """Record the duration of a put of the same size, as an estimate until a flush was measured."""
        self._expected_s = put_s

    def measured(self, put_s: float, *, started: float) -> None:
        """Record that the flush of ``started`` is durable, after ``put_s``.

        A put during which the store throttled measures the throttling, not the duration of a put.
        """
        if started < self._throttled_at:
            return
        self._times.add(put_s)
        self._put_s = put_s if self._put_s is None else self._put_s + SMOOTHING * (put_s - self._put_s)
        self._lengthened_s *= 0.5 ** max(1 / HALVING_PUTS, self._lengthened_s / HALVING_S)
        if self._lengthened_s < max(LENGTHENED_LEAST_S, self._unlengthened_s):
            self._lengthened_s = 0.0

    def throttled(self, now: float, *, started: float | None = None) -> bool:
        """Lengthen the interval, since the store throttles; return whether it did. It does so once for all the puts
        that were in flight. ``started`` is when the throttled one started, where that is known.
        """
        self._throttled_at = now
        if started is None:
            started = now - self.interval_s - (self._put_s or 0.0)
        if started < self._lengthened_at:
            return False
        longer_s = max(LENGTHENED_LEAST_S, LENGTHENING * self.interval_s)
        self._lengthened_s = min(longer_s, max(self._throttled_max_s, self._unlengthened_s))
        self._lengthened_at = now
        return True

    @property
    def _unlengthened_s(self) -> float:
        if self._fixed_s is not None:
            return self._fixed_s
        put_s = self._expected_s if self._put_s is None else self._put_s
        return put_s / PUTS_PER_PUT_TIME
