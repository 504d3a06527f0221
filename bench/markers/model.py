"""Acks and puts of the real engine on a virtual clock, beside the arithmetic of paced group commit.

Arrivals are a Poisson process of ``rate`` per second, ``interval_s`` is the least time between two starts, and the
first request after a quiet interval is flushed at once. From start to start a flush then takes the interval, and where
no request waits at its end the time to the next arrival: ``interval_s + exp(-rate * interval_s) / rate``. Requests that
arrived in the interval waited for half of it in the mean. No policy with as few puts has a shorter mean wait.

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

from tallymark.bench.markers.memory import PutTime, SlowMemory, constant, lognormal
from tallymark.bench.results import Table, column, percent, seconds
from tallymark.engine.markers import MarkerDirectory, open_marker_engine
from tallymark.engine.markers.pace import PUTS_PER_PUT_TIME
from tallymark.engine.settings import MarkerSettings

Shape = Literal["constant", "lognormal"]

SHAPES: tuple[Shape, ...] = ("constant", "lognormal")
PUTS_S = (0.002, 0.03, 0.1)
RATES = (100.0, 1_000.0, 10_000.0, 100_000.0)

BAR = 0.03
"""The largest share by which a mean ack may differ from the model."""

REQUESTS_PER_INTERVAL = 20.0
"""Above, a request carries several markers: for the model that many arrivals are the same as more."""

SETTINGS = MarkerSettings(merge_bytes_ratio_max=1, hedge_quantile=None)
"""So that each put is one flush's: merges add one to 12 of them, and second copies what ``hedge_ratio_max`` allows."""


def ack_s(rate: float, interval_s: float, put_s: float) -> float:
    """Return the mean time from a request to its ack."""
    arrivals = rate * interval_s
    return put_s + arrivals * interval_s / 2 / (arrivals + math.exp(-arrivals))


def puts_per_s(rate: float, interval_s: float) -> float:
    return 1 / (interval_s + math.exp(-rate * interval_s) / rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Arrivals, and how long puts take."""

    shape: Shape
    put_s: float
    """The median; the lognormal's 99th percentile is five of them."""
    rate: float
    """Markers a second."""
    flushes: int = 300
    """About as many are measured."""
    seed: int = 1

    def put_time(self) -> PutTime:
        return constant(self.put_s) if self.shape == "constant" else lognormal(self.put_s, _random(self.seed))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Acks and puts of a load without its warm-up, beside the model at the mean put of the same time."""

    load: Load
    markers: int
    put_s: float
    """Mean over markers of the put that carried them. A put's time does not depend on what it carries, so this is also
    the mean over puts, with less chance in it beside the acks of the same markers."""
    interval_s: float
    """Of the model: the mean put over ``PUTS_PER_PUT_TIME``."""
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
        """Difference of the mean ack from the model, as a share of it."""
        return self.ack_s / self.model_ack_s - 1

    @property
    def puts_off(self) -> float:
        return self.puts_per_s / self.model_puts_per_s - 1


def simulate(load: Load) -> Outcome:
    """Run the engine under this load on a clock that jumps from event to event."""
    outcome: Outcome = trio.run(_Run(load).outcome, clock=trio.testing.MockClock(autojump_threshold=0))
    return outcome


class _Run:
    def __init__(self, load: Load) -> None:
        self._load = load
        self._store = SlowMemory(load.put_time())
        self._interval_s = load.put_s / PUTS_PER_PUT_TIME
        self._markers = 0
        self._acks_s = 0.0

    async def outcome(self) -> Outcome:
        async with open_marker_engine(self._store, SETTINGS) as engine:
            directory = engine.directory("001")
            await self._arrive(directory, _random(self._load.seed + 1), seconds=8 * self._load.put_s)
            store = self._store
            puts, put_total_s = store.puts, store.puts_s
            lines, line_total_s = store.lines, store.lines_s
            self._markers, self._acks_s = 0, 0.0
            flush_s = 1 / puts_per_s(self._load.rate, self._interval_s)
            seconds = self._load.flushes * flush_s
            await self._arrive(directory, _random(self._load.seed + 2), seconds=seconds)
            count = store.puts - puts
            put_s = (store.puts_s - put_total_s) / count
            return Outcome(
                load=self._load,
                markers=self._markers,
                put_s=(store.lines_s - line_total_s) / (store.lines - lines),
                interval_s=put_s / PUTS_PER_PUT_TIME,
                ack_s=self._acks_s / self._markers,
                puts_per_s=count / seconds,
            )

    async def _arrive(self, directory: MarkerDirectory, random: Random, *, seconds: float) -> None:
        """Send requests at random moments; return when all are answered."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    title: str = column("")
    rate: float = column("arrivals/s", lambda value: f"{value:,.0f}")
    put_s: float = column("mean put", seconds)
    ack_s: float = column("mean ack", seconds)
    model_ack_s: float = column("by the model", seconds)
    ack_off: float = column("difference", percent)
    puts_per_s: float = column("puts/s")
    model_puts_per_s: float = column("by the model")
    puts_off: float = column("difference", percent)


def table(flushes: int = 300) -> Table:
    title = (
        "mean acks on a virtual clock without merges and second copies, beside the arithmetic of paced group commit; "
        f"bar: within {BAR:.0%}"
    )
    return Table(title=title, rows=[_row(simulate(load)) for load in loads(flushes)])


def _row(found: Outcome) -> ModelRow:
    return ModelRow(
        title=f"{found.load.shape} puts of {seconds(found.load.put_s)}",
        rate=found.load.rate,
        put_s=found.put_s,
        ack_s=found.ack_s,
        model_ack_s=found.model_ack_s,
        ack_off=found.ack_off,
        puts_per_s=found.puts_per_s,
        model_puts_per_s=found.model_puts_per_s,
        puts_off=found.puts_off,
    )


if __name__ == "__main__":
    from tallymark.bench.command import print_table

    print_table(table())
