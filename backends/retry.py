"""Retries of requests to a store: when, how often, and when no more. The one place that decides it, for every store.

Owns: pauses, bounds and the budget. Does not own: which calls may be repeated at all (``retrying``, and each store for
its own puts).

How the bounds compose: every call through ``Retries`` ends within ``timeout_s``, so that outer bounds see an answer
before they expire: ``MarkerSettings.flush_timeout_s`` (30 s) contains one put_new with all its repeats, and
``CommitSettings.decision_timeout_s`` (120 s) several of them, one after the other. If ``timeout_s`` is raised to an
outer bound, those attempts overlap, which is safe and costs requests.
"""

import random
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields
from typing import TypeVar

import anyio

from tallymark.backends.errors import InvalidPath, Throttled, Unavailable
from tallymark.backends.meter import RequestMeter
from tallymark.backends.options import StorageOptions

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    """Settings of the repeats of an unanswered request. Each is an option of ``StorageOptions``, with the same
    default.
    """

    attempt_count: int = 10
    """Maximum attempts of one call. With these pauses ten attempts take ``timeout_s`` where each fails at once: a store
    that restarts within five seconds is waited for.
    """
    timeout_s: float = 20.0
    """Time limit of one call with all its repeats: together with the bounds above it, a dead store is a clear error
    within half a minute.
    """
    attempt_timeout_s: float = 10.0
    """Time limit of one attempt without an answer; ten times a slow store's 99.9th percentile, and short enough for a
    second attempt within ``timeout_s``. In a listing it bounds the wait for each page.
    """
    bytes_per_s_min: float = 512 * 1024.0
    """The slowest upload that is waited for: both bounds are longer by the time that the bytes take at this rate."""
    pause_s: float = 0.1
    """The longest pause before the first repeat; it doubles with each. The pause is drawn evenly from 0 to there
    ("full jitter"), so that callers that failed together do not retry together."""
    throttled_pause_s: float = 1.0
    """The same where the store throttled. GCS accepts one write per second of one object."""
    pause_max_s: float = 5.0
    """Maximum pause: a store that is back is noticed within that."""
    budget_count: int = 100
    """Maximum repeats at once, of all callers together; more than the calls in flight of one process."""
    budget_ratio: float = 0.5
    """Repeats that each call adds to the budget. While a store is down, its requests grow by half at most, not tenfold;
    one that fails a third of its requests still answers all calls.
    """
    budget_per_s: float = 5.0
    """Repeats that each second adds to the budget, so that few calls need not wait for others to earn repeats."""

    @classmethod
    def of(cls, options: StorageOptions) -> "RetrySettings":
        """Return the settings in the options of a store."""
        return cls(
            attempt_count=options.retry_attempt_count,
            timeout_s=options.answer_timeout_s,
            attempt_timeout_s=options.request_timeout_s,
            bytes_per_s_min=options.data_bytes_per_s_min,
            pause_s=options.retry_pause_s,
            throttled_pause_s=options.retry_throttled_pause_s,
            pause_max_s=options.retry_pause_max_s,
            budget_count=options.retry_budget_count,
            budget_ratio=options.retry_budget_ratio,
            budget_per_s=options.retry_budget_per_s,
        )

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int | float) or not value >= 0 or (value == 0 and not _may_be_zero(field.name)):
                raise InvalidPath(f"setting {field.name}={value!r}: {field.name} is a number above zero")


def _may_be_zero(name: str) -> bool:
    return "pause" in name or "budget" in name


@dataclass(frozen=True, slots=True)
class RetryStatistics:
    calls: int
    repeats: int
    given_up: int
    """Calls that ended without an answer, whatever bound ended them."""
    refused: int
    """Of these, those with attempts and time left, but no budget."""
    budget_left: float


class Retries:
    """Repeats calls whose outcome is unknown. One object per store: all its callers share the budget.

    Threads and event loops of one process may share it.
    """

    def __init__(
        self,
        settings: RetrySettings | None = None,
        *,
        chance: Callable[[], float] | None = None,
        meter: RequestMeter | None = None,
        where: str = "",
    ) -> None:
        """``chance`` returns numbers from 0 to below 1; ``meter`` counts the repeats; ``where`` is the store's URL."""
        self.where = where
        self.settings = settings or RetrySettings()
        self._chance = chance or random.SystemRandom().random
        self._meter = meter
        self._lock = threading.Lock()
        self._budget = _Budget(self.settings)
        self._calls = self._repeats = self._given_up = self._refused = 0

    async def run(self, call: Callable[[], Awaitable[T]], *, sent: int = 0, more_s: float = 0.0) -> T:
        """Return the result of ``call``, which is repeated after Unavailable.

        ``sent`` is the number of bytes that one attempt uploads, ``more_s`` the further time it may take.

        Raises:
            Unavailable: the last one, with the number and time of the attempts. Other errors are raised at once.
        """
        trial = self.trial(sent=sent, more_s=more_s)
        while True:
            try:
                return await bounded(call, trial.attempt_s(anyio.current_time()), self.where)
            except Unavailable as error:
                await anyio.sleep(trial.pause_s(error, anyio.current_time()))

    def trial(self, *, sent: int = 0, more_s: float = 0.0) -> "Trial":
        """Return one call's count of attempts and time, which start now."""
        now = anyio.current_time()
        with self._lock:
            self._calls += 1
            self._budget.earn(now)
        return Trial(self, now, more_s + sent / self.settings.bytes_per_s_min)

    def statistics(self) -> RetryStatistics:
        with self._lock:
            return RetryStatistics(self._calls, self._repeats, self._given_up, self._refused, self._budget.left)

    def _pause_s(self, error: Unavailable, attempts: int) -> float:
        return longest_pause_s(self.settings, error, attempts) * self._chance()

    def _repeat(self, now: float) -> bool:
        """Take a repeat from the budget, if there is one."""
        with self._lock:
            if not self._budget.spend(now):
                self._given_up += 1
                self._refused += 1
                return False
            self._repeats += 1
        if self._meter is not None:
            self._meter.repeated()
        return True

    def _give_up(self) -> None:
        with self._lock:
            self._given_up += 1

    def __repr__(self) -> str:
        return f"<Retries {self._calls} calls, {self._repeats} repeats, {self._given_up} given up>"


class Trial:
    """Attempts at one call. The caller passes the time, and sleeps itself."""

    def __init__(self, retries: Retries, started_s: float, more_s: float) -> None:
        self._retries = retries
        self._settings = retries.settings
        self._started_s = started_s
        self._more_s = more_s
        self._failures = 0
        self._last_informative: Unavailable | None = None
        """The last informative failure: the last attempt is cut short, and its error is often not informative."""

    def attempt_s(self, now: float) -> float:
        """Return how long the attempt that starts now may take."""
        return min(self._settings.attempt_timeout_s + self._more_s, self._ends_s - now)

    def answered(self, now: float, *, is_news: bool) -> None:
        """Restart the time after an answer to a part of the call, such as a page; after progress, also the attempts."""
        self._started_s = now
        if is_news:
            self._failures = 0

    def pause_s(self, error: Unavailable, now: float) -> float:
        """Record a failed attempt. Return the time to wait before the next.

        Raises:
            Unavailable: the error again, with the number and time of the attempts, if another attempt is not
                worthwhile.
        """
        self._failures += 1
        if self._last_informative is None or not isinstance(error, _Silence):
            self._last_informative = error
        pause_s = self._retries._pause_s(error, self._failures)
        if self._failures >= self._settings.attempt_count or now + pause_s >= self._ends_s:
            self._retries._give_up()
            raise self._given_up(self._last_informative, now) from error
        if not self._retries._repeat(now):
            raise self._given_up(self._last_informative, now, "; too many calls fail to repeat each") from error
        return pause_s

    @property
    def _ends_s(self) -> float:
        return self._started_s + self._settings.timeout_s + self._more_s

    def _given_up(self, error: Unavailable, now: float, why: str = "") -> Unavailable:
        times = "once" if self._failures == 1 else f"{self._failures} times"
        kind = Unavailable if isinstance(error, _Silence) else type(error)
        return kind(f"{error} (tried {times} in {now - self._started_s:.1f} s{why})")


def longest_pause_s(settings: RetrySettings, error: Unavailable, attempts: int) -> float:
    """Return the longest pause after this many attempts, of which the last ended with the error."""
    first_s = settings.throttled_pause_s if isinstance(error, Throttled) else settings.pause_s
    return min(settings.pause_max_s, first_s * 2.0 ** (attempts - 1))


async def bounded(call: Callable[[], Awaitable[T]], seconds: float, where: str = "") -> T:
    """Return what the call returns. Raises Unavailable if that takes longer; it may then still happen."""
    with anyio.move_on_after(seconds):
        return await call()
    raise _Silence(f"{where}: no answer within {seconds:.1f} s".removeprefix(": "))


class _Silence(Unavailable):
    """The attempt's time limit has expired."""


class _Budget:
    """A token bucket: calls and time fill it, repeats empty it."""

    def __init__(self, settings: RetrySettings) -> None:
        self._settings = settings
        self._filled_s: float | None = None
        self.left = float(settings.budget_count)

    def earn(self, now: float) -> None:
        """Count one more call."""
        self._fill(now)
        self._add(self._settings.budget_ratio)

    def spend(self, now: float) -> bool:
        self._fill(now)
        if self.left < 1:
            return False
        self.left -= 1
        return True

    def _fill(self, now: float) -> None:
        if self._filled_s is not None:  # each loop has its own clock: time may seem to run backwards
            self._add(max(0.0, now - self._filled_s) * self._settings.budget_per_s)
        self._filled_s = now

    def _add(self, count: float) -> None:
        self.left = min(float(self._settings.budget_count), self.left + count)
