"""Acks and puts of the real engine on a virtual clock, beside what paced group commit comes to by arithmetic.

Arrivals are a Poisson process of ``rate`` a second, ``interval_s`` is the least time between two starts, and the first
request after a quiet interval is flushed at once. From start to start a flush then takes the interval, and where nobody
waits at its end the time to the next arrival: ``interval_s + exp(-rate * interval_s) / rate``. Those who came in the
interval waited for half of it in the mean. No policy with as few puts has a shorter mean wait.

``python -m tallymark.bench.markers.model`` prints the table; the same seed gives the same figures.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Literal

import anyio
import trio
import trio.testing

from tallymark.bench.markers.late_store import LateStore
from tallymark.bench.markers.put_time import PutTime, constant, lognormal
from tallymark.engine.markers import MarkerDirectory, open_marker_engine
from tallymark.engine.markers.pace import PUTS_PER_PUT_TIME
from tallymark.engine.settings import MarkerSettings

Shape = Literal["constant", "lognormal"]

SHAPES: tuple[Shape, ...] = ("constant", "lognormal")
PUTS_S = (0.002, 0.03, 0.1)
RATES = (100.0, 1_000.0, 10_000.0, 100_000.0)

REQUESTS_PER_INTERVAL = 20.0
"""Beyond, a request carries more markers than one: of that many arrivals the model says what it says of more."""

SETTINGS = MarkerSettings(merge_bytes_ratio_max=1, hedge_quantile=None)
"""So that each put is one flush's: merges add one to 12 of them, and second copies what ``hedge_ratio_max`` allows."""


def ack_s(rate: float, interval_s: float, put_s: float) -> float:
    """The mean time from asking to the answer."""
    arrivals = rate * interval_s
    return put_s + arrivals * interval_s / 2 / (arrivals + math.exp(-arrivals))


def puts_per_s(rate: float, interval_s: float) -> float:
    return 1 / (interval_s + math.exp(-rate * interval_s) / rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What comes, and how the store answers."""

    shape: Shape
    put_s: float
    """The median; the lognormal's 99th percentile is five of them."""
    rate: float
    """Markers a second."""
    flushes: int = 300
    """About how many there are to be."""
    seed: int = 1

    def put_time(self) -> PutTime:
        return constant(self.put_s) if self.shape == "constant" else lognormal(self.put_s, _random(self.seed))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a load came to, warm-up left out, beside the model at the mean put of the same time."""

    load: Load
    markers: int
    put_s: float
    """Mean over markers of the put that carried them. Puts do not know what they carry, so that this is the mean over
    puts as well, with less of chance beside the acks of the same markers."""
    interval_s: float
    """What the model is given: the mean put by ``PUTS_PER_PUT_TIME``."""
    ack_s: float
    puts_per_s: float

    @property
    def model_ack_s(self) -> float:
        return ack_s(self.load.rate, self.interval_s, self.put_s)

    @property
    def model_puts_per_s(self) -> float:
        return puts_per_s(self.load.rate, self.interval_s)

    @property
    def ack_off(self) -> float:
        """By how much the mean ack differs from the model, as a share of it."""
        return self.ack_s / self.model_ack_s - 1

    @property
    def puts_off(self) -> float:
        return self.puts_per_s / self.model_puts_per_s - 1

    def __str__(self) -> str:
        return (
            f"{self.load.shape:9} put {self.put_s * 1e3:7.2f} ms, {self.load.rate:9,.0f} markers/s: "
            f"ack {self.ack_s * 1e3:7.2f} ms, model {self.model_ack_s * 1e3:7.2f} ({self.ack_off:+.1%}); "
            f"{self.puts_per_s:7.1f} puts/s, model {self.model_puts_per_s:7.1f} ({self.puts_off:+.1%})"
        )


def simulate(load: Load) -> Outcome:
    """Run the engine under this load on a clock that jumps from event to event."""
    outcome: Outcome = trio.run(_Run(load).outcome, clock=trio.testing.MockClock(autojump_threshold=0))
    return outcome


class _Run:
    def __init__(self, load: Load) -> None:
        self._load = load
        self._store = LateStore(load.put_time())
        self._interval_s = load.put_s / PUTS_PER_PUT_TIME
        self._markers = 0
        self._acks_s = 0.0

    async def outcome(self) -> Outcome:
        async with open_marker_engine(self._store, SETTINGS) as engine:
            directory = engine.directory("001")
            await self._arrive(directory, _random(self._load.seed + 1), seconds=8 * self._load.put_s)
            store = self._store
            puts, put_total_s = store.put_count, store.put_total_s
            lines, line_total_s = store.line_count, store.line_total_s
            self._markers, self._acks_s = 0, 0.0
            flush_s = 1 / puts_per_s(self._load.rate, self._interval_s)
            seconds = self._load.flushes * flush_s
            await self._arrive(directory, _random(self._load.seed + 2), seconds=seconds)
            count = store.put_count - puts
            put_s = (store.put_total_s - put_total_s) / count
            return Outcome(
                load=self._load,
                markers=self._markers,
                put_s=(store.line_total_s - line_total_s) / (store.line_count - lines),
                interval_s=put_s / PUTS_PER_PUT_TIME,
                ack_s=self._acks_s / self._markers,
                puts_per_s=count / seconds,
            )

    async def _arrive(self, directory: MarkerDirectory, random: Random, *, seconds: float) -> None:
        """Requests at random moments; returns when all are answered."""
        size = max(1, round(self._load.rate * self._interval_s / REQUESTS_PER_INTERVAL))
        due, number = anyio.current_time(), 0
        ends = due + seconds
        async with anyio.create_task_group() as tasks:
            while (due := due + random.expovariate(self._load.rate / size)) < ends:
                await trio.sleep_until(due)
                number += 1
                tasks.start_soon(self._ask, directory, [f"{due}-{each}.parquet" for each in range(size)])
            await trio.sleep_until(ends)

    async def _ask(self, directory: MarkerDirectory, names: list[str]) -> None:
        asked = anyio.current_time()
        await directory.create(*names)
        self._markers += len(names)
        self._acks_s += (anyio.current_time() - asked) * len(names)


def _random(seed: int) -> Random:
    return Random(seed)  # noqa: S311 the same figures in each run


def loads(flushes: int = 300) -> Iterator[Load]:
    for shape in SHAPES:
        for put_s in PUTS_S:
            for rate in RATES:
                yield Load(shape=shape, put_s=put_s, rate=rate, flushes=flushes)


if __name__ == "__main__":
    for each in loads():
        print(simulate(each), flush=True)  # noqa: T201 a program
