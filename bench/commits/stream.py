"""Part ``stream``: many callers of one ``Table.stream``, beside a model of their acks."""

import math
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import cycle
from operator import add
from pathlib import Path

import pyarrow as pa

from tallymark.backends import Unavailable
from tallymark.bench.child import ChildFailed
from tallymark.bench.commits.measure import Ground, by_verb, measure, rate, verbs
from tallymark.bench.commits.sides import ROWS, SCHEMA, SIDES, FloorWriter, batches, is_installed
from tallymark.bench.commits.writers import present
from tallymark.bench.load import Load, Seen, Target
from tallymark.bench.results import Chart, Table, column, seconds, size
from tallymark.bench.stores import options_of
from tallymark.bench.writes.process_tree import peak_bytes
from tallymark.engine.errors import TryAgain
from tallymark.engine.settings import StreamSettings
from tallymark.engine.streams.stream import Stream
from tallymark.engine.table import open_table

REQUESTS = 4
"""Of a flush in sequence: reservation, marker, file, log entry."""

BUSY = 0.05
"""Share of its time that a caller at a given rate waits for acks: few of its appends wait for the one before."""

RATE_MAX = 1000.0
"""Most appends per second at a given rate: the process of the callers is not to be what limits them."""

TOGETHER = 100
"""Appends that a writer of another format commits together."""

SIZES = tuple(1 + 37 * number % ROWS for number in range(ROWS))
"""Rows of one append after the other: each number from 1 to ``ROWS`` once."""

ROWS_MEAN = sum(SIZES) / len(SIZES)

STATUS = Path("/proc/self/status")


@dataclass(slots=True)
class Shared:
    """What all callers have in common."""

    stream: Stream
    counts: dict[str, float] = field(default_factory=lambda: {"refused": 0, "committed": 0})
    sizes: Iterator[int] = field(default_factory=lambda: cycle(SIZES))
    batches: Iterator[pa.Table] = field(default_factory=lambda: batches(1))
    before_bytes: int = 0
    flushes_before: int = 0
    committed_before: float = 0


class StreamCaller:
    style = "task"

    def __init__(self, shared: Shared, _target: Target, _series: int) -> None:
        self._shared = shared

    @staticmethod
    @asynccontextmanager
    async def shared(target: Target) -> AsyncIterator[Shared]:
        """Yield the stream after a first append."""
        table = open_table(target["table"], options=options_of(target))
        async with table.stream(schema=SCHEMA, settings=StreamSettings(**target["stream"])) as stream:
            shared = Shared(stream)
            await StreamCaller(shared, target, 0).ask()
            shared.before_bytes, shared.flushes_before = peak_bytes(STATUS), stream.flushes
            shared.committed_before = shared.counts["committed"]
            yield shared

    async def ask(self) -> None:
        rows = next(self._shared.batches).slice(0, next(self._shared.sizes))
        while not await self._append(rows):
            self._shared.counts["refused"] += 1
        self._shared.counts["committed"] += rows.num_rows

    async def _append(self, rows: pa.Table) -> bool:
        try:
            await self._shared.stream.append(rows)
        except (TryAgain, Unavailable):
            return False
        return True

    def statistics(self) -> dict[str, float]:
        shared = self._shared
        return {
            **shared.counts,
            "appended": shared.counts["committed"] - shared.committed_before,
            "flushes": shared.stream.flushes - shared.flushes_before,
            "before_bytes": shared.before_bytes,
            "peak_bytes": peak_bytes(STATUS),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AckRow:
    """Acks of the callers of one load."""

    title: str = column("")
    callers: int = column("callers")
    flush_interval_s: float | None = column("flush interval", seconds)
    offered: float | None = column("appends offered/s", "{:,.0f}".format)
    """None: each caller appends again when it is answered."""
    appends_per_s: float = column("appends/s", "{:,.0f}".format)
    rows_per_s: float = column("rows/s", "{:,.0f}".format)
    mean_s: float = column("mean ack", seconds)
    model_s: float | None = column("model", seconds)
    over_model: float | None = column("times the model")
    p50_s: float = column("median", seconds)
    p99_s: float = column("99 %", seconds)
    appends: int = column("appends")
    refused: int = column("refused")

    @property
    def case(self) -> str:
        """Return its name in a chart."""
        interval = "" if self.flush_interval_s is None else f", {seconds(self.flush_interval_s)}"
        offered = "" if self.offered is None else f", {self.offered:,.0f}/s"
        callers = "1 caller" if self.callers == 1 else f"{self.callers:,} callers"
        return f"{self.title}, {callers}{interval}{offered}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """What the acks of one load took."""

    title: str = column("")
    per_flush: float = column("appends/flush", "{:,.1f}".format)
    cpu_s: float = column("CPU/append", seconds)
    flush_cpu_s: float = column("CPU/flush", seconds)
    before_bytes: int | None = column("memory before", size)
    peak_bytes: int | None = column("peak", size)
    max_bytes: int | None = column("max_bytes", size)
    by_verb: Mapping[str, float] = column("requests/flush", verbs)


@dataclass(frozen=True, slots=True)
class Case:
    """One load of one side, and how often it was measured."""

    title: str
    load: Load
    runs: Sequence[Seen]
    together: int = 1
    """Appends of each request of the load."""
    flush_interval_s: float | None = None
    model_s: float | None = None
    max_bytes: int | None = None

    def rows(self) -> tuple[AckRow, CostRow]:
        found = reduce(add, self.runs)
        extra = found.extra
        appends, flushes = self.together * found.answered, extra.get("flushes", found.answered)
        appends_per_s = self.together * rate(found)
        acks = AckRow(
            title=self.title,
            callers=self.together * self.load.connections,
            flush_interval_s=self.flush_interval_s,
            offered=self.load.rate,
            appends_per_s=appends_per_s,
            rows_per_s=appends_per_s * extra.get("appended", appends * ROWS_MEAN) / appends,
            mean_s=found.mean_s,
            model_s=self.model_s,
            over_model=None if self.model_s is None else found.mean_s / self.model_s,
            p50_s=found.latency.p50_s,
            p99_s=found.latency.p99_s,
            appends=appends,
            refused=int(extra["refused"]),
        )
        cost = CostRow(
            title=acks.case,
            per_flush=appends / flushes,
            cpu_s=found.caller_cpu_s / appends,
            flush_cpu_s=found.caller_cpu_s / flushes,
            before_bytes=self._most("before_bytes"),
            peak_bytes=self._most("peak_bytes"),
            max_bytes=self.max_bytes,
            by_verb={verb: number / flushes for verb, number in by_verb(found).items()},
        )
        return acks, cost

    def _most(self, name: str) -> int | None:
        return max((int(run.extra[name]) for run in self.runs if name in run.extra), default=None)


def ack_model(flush_interval_s: float, request_s: float, rate: float | None) -> float:
    """Return the mean ack where a flush is ``REQUESTS`` requests in sequence and takes nothing else.

    At a given rate, appends arrive at random moments. Those of the interval after the start of a flush wait for its
    end, half of it on average; if there are none, the next one waits for nothing. Callers that append again when they
    are answered do so together, and miss the flush that has answered them by its own time.
    """
    flush_s = REQUESTS * request_s
    if rate is None:
        return max(flush_interval_s, flush_s)
    gathered = rate * flush_interval_s
    return gathered * flush_interval_s / 2 / (gathered + math.exp(-gathered)) + flush_s


def tables(ground: Ground) -> Iterator[Table]:
    absent: dict[str, str] = {}
    found = [case.rows() for case in (*_ours(ground, absent), *_others(ground, absent))]
    charts = (Chart(values=("mean_s", "model_s", "p99_s"), label="case", axis="s"),)
    yield Table(
        title=f"acks of a stream, {ground.place.where}", rows=[acks for acks, _ in found], charts=charts, absent=absent
    )
    yield Table(title=f"what they cost, {ground.place.where}", rows=[cost for _, cost in found])


def _ours(ground: Ground, absent: dict[str, str]) -> Iterator[Case]:
    ours, effort = SIDES["ours"], ground.effort
    if ours not in ground.sides:
        return
    request_s = _request_s(ground)
    for interval_s in effort.flush_intervals_s:
        settings = {"flush_interval_s": interval_s, "max_bytes": effort.max_bytes}
        what = f"a stream every {interval_s:g} s"
        for load in _loads(ground, interval_s + REQUESTS * request_s):
            runs = _rounds(
                ground, what, load, absent, partial(measure, ground, ours, load, StreamCaller, stream=settings)
            )
            model_s = ack_model(interval_s, request_s, load.rate)
            if runs:
                yield Case(ours.title, load, runs, 1, interval_s, model_s, effort.max_bytes)


def _loads(ground: Ground, ack_s: float) -> Iterator[Load]:
    """Yield the loads: callers that append again when they are answered, and many at a given rate."""
    for callers in ground.effort.stream_callers:
        load = ground.load(callers, processes=1)
        yield load
        if callers > 1:
            yield replace(load, rate=min(BUSY * callers / ack_s, RATE_MAX))


def _others(ground: Ground, absent: dict[str, str]) -> Iterator[Case]:
    """Yield what a writer does that has gathered the appends of 100 callers: one commit of their rows."""
    rows = round(TOGETHER * ROWS_MEAN)
    for side in present(ground)[0]:
        if side.package is None or not is_installed(side):
            continue
        load, what = ground.load(1), f"{side.title}, {TOGETHER} appends together"
        runs = _rounds(ground, what, load, absent, partial(measure, ground, side, load, rows=rows))
        if runs:
            yield Case(f"{side.title}, one write", load, runs, TOGETHER)


def _rounds(
    ground: Ground, what: str, load: Load, absent: dict[str, str], measured: Callable[[], Seen]
) -> Sequence[Seen]:
    """Return what was seen in each round; nothing if a round has failed."""
    runs: list[Seen] = []
    for number in range(ground.effort.rounds):
        ground.progress(f"commits: {what}, {load}, {ground.place.where}, round {number + 1}")
        try:
            runs.append(measured())
        except ChildFailed as error:
            absent[f"{what}, {load}"] = str(error)
            return []
    return runs


def _request_s(ground: Ground) -> float:
    """Return the time of a request: the latency of the stand-in, or that of a synced file of this disk."""
    if ground.place.latency_s:
        return ground.place.latency_s
    return measure(ground, FloorWriter, ground.load(1)).latency.p50_s
