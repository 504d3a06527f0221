"""Hedged puts: a second copy of a put that takes unusually long.

A put is late when it takes longer than most of the recent ones did (``MarkerSettings.hedge_quantile``), and so long
that a second copy is likely to be answered first: see ``Hedge.late_s``.

Owns: when a second copy is sent, how many there may be, and which tasks still wait for a superfluous answer.
"""

from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskGroup

from tallymark.backends.errors import Unavailable
from tallymark.engine.markers.pace import QUICK_MEDIAN_S, Pace, PutTimes
from tallymark.engine.markers.statistics import MarkerCounts
from tallymark.engine.settings import MarkerSettings

BURST = 2
"""Second copies that may be saved up. A thousand quick puts without a second copy do not earn a thousand copies at once
when the store stalls.
"""

LATE_LEAST_S = 0.05
"""Lower bound of ``late_s``: delays shorter than this may be the process's own."""

LATE_LEAST_MEDIANS = 2
"""Lower bound of ``late_s`` in median puts. A second copy sent after one median is answered after two, at even odds.
Where the store is steady and the quantile is near the median, no put is ever late.
"""


class Hedge:
    """Sends a put, and again if it is late. Without tasks to run copies in, it sends each put once."""

    def __init__(self, settings: MarkerSettings, counts: MarkerCounts, pace: Pace) -> None:
        self._settings = settings
        self._counts = counts
        self._pace = pace
        self._times = PutTimes()
        self._tasks: TaskGroup | None = None
        self._races: dict[_Race, None] = {}
        """In the order in which they started."""
        self._allowance = float(BURST)

    def run_in(self, tasks: TaskGroup) -> None:
        """Run copies as tasks of this group, which ends them."""
        self._tasks = tasks

    async def send(self, put: Callable[[], Awaitable[None]]) -> None:
        """Return with the first good answer. Raises the last error, once no copy is in flight any more.

        The superfluous copy is left to end by itself: a started put can hardly be cancelled, and ``drained`` waits for
        it.
        """
        self._allowance = min(BURST, self._allowance + self._settings.hedge_ratio_max)
        late_s = self.late_s
        if late_s is None or self._tasks is None:
            await self._timed(put)
            return
        race = _Race(lambda: self._timed(put), self._settings.flush_timeout_s)
        self._races[race] = None
        race.over.append(lambda: self._races.pop(race))
        race.start(self._tasks)
        with anyio.move_on_after(late_s):
            await race.settled.wait()
        if not race.settled.is_set() and self._may_hedge():
            self._allowance -= 1
            self._counts.hedges += 1
            race.start(self._tasks)
        await race.settled.wait()
        if race.error is not None:
            raise race.error
        self._counts.hedges_won += race.winner > 0

    async def drained(self) -> None:
        """Return when every copy that is in flight now has ended, however it ended."""
        for race in tuple(self._races):
            await race.ended.wait()

    @property
    def late_s(self) -> float | None:
        """The time after which a put is late; None before the first put, or where no copies are sent.

        A store with quick puts (``QUICK_MEDIAN_S``) gets no copies: the cause of one delay there delays the second copy
        as well, and readiness to send one costs each put about 50 us.
        """
        median_s = self._times.quantile_s(0.5)
        if self._settings.hedge_quantile is None or median_s is None or median_s < QUICK_MEDIAN_S:
            return None
        quantile_s = self._times.quantile_s(self._settings.hedge_quantile)
        assert quantile_s is not None
        return max(LATE_LEAST_S, quantile_s, LATE_LEAST_MEDIANS * median_s)

    async def _timed(self, put: Callable[[], Awaitable[None]]) -> None:
        started = anyio.current_time()
        await put()
        self._times.add(anyio.current_time() - started)

    def _may_hedge(self) -> bool:
        if self._pace.is_lengthened:
            return False  # the store asks for fewer requests
        unneeded = sum(race.settled.is_set() for race in self._races)
        return unneeded < self._settings.worker_count and self._allowance >= 1


class _Race:
    """The copies of one put."""

    def __init__(self, put: Callable[[], Awaitable[None]], timeout_s: float) -> None:
        self._put = put
        self._timeout_s = timeout_s
        self._started = 0
        self._running = 0
        self.settled = anyio.Event()
        """One copy has succeeded, or all have ended."""
        self.ended = anyio.Event()
        self.error: Exception | None = Unavailable("the put was given up")
        """Why no copy has succeeded; None once one has."""
        self.winner = 0
        """The copy that has succeeded: 0 is the first."""
        self.over: list[Callable[[], None]] = []

    def start(self, tasks: TaskGroup) -> None:
        self._running += 1
        tasks.start_soon(self._run, self._started)
        self._started += 1

    async def _run(self, number: int) -> None:
        try:
            with anyio.fail_after(self._timeout_s):
                await self._put()
        except Exception as error:  # leaves through the race
            if not self.settled.is_set():
                self.error = error
        else:
            if not self.settled.is_set():
                self.error = None
                self.winner = number
                self.settled.set()
        finally:
            self._running -= 1
            if not self._running:
                self.settled.set()
                self.ended.set()
                for act in self.over:
                    act()
