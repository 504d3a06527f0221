"""What the engine adds to a put: the mean ack over the mean put that the measured wrapper saw in the same time.

``quiet`` asks for one marker after the other, each when the last is acked. Under load requests of one marker each come
at random moments, whether or not those before them are acked. The model has 1 for the first, and at most 1.125 for the
second with at most four flushes begun in the time of a put; what comes on top is the engine's own. With ``is_far`` the
requests come from this process to a service in another one, by the client that tasks use; otherwise the engine runs in
this process. Beside each ratio stands the least that it could have been: what the model says of that load, with what
the least program adds to a put in the same minute (``bare``).

``python -m tallymark.bench.markers.pace_cost`` measures each of ``LOADS`` five times and prints the worst.
"""

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import count, cycle
from pathlib import Path
from random import Random
from typing import Any

import anyio
import trio

from tallymark.backends.measured import MeasuredBackend
from tallymark.bench.markers.bare import bare_ratio
from tallymark.bench.markers.delayed import DelayedMemory
from tallymark.bench.markers.model import ack_s
from tallymark.bench.markers.put_meter import PutMeter
from tallymark.bench.views.child import Child, child
from tallymark.engine.markers import MarkerDirectory, open_marker_engine
from tallymark.engine.markers.pace import PUTS_PER_PUT_TIME
from tallymark.engine.rpc.client import JobClient
from tallymark.engine.rpc.handshake import ServiceAddress

_SERVER = "tallymark.bench.markers.throughput_server"
_INSTANT = "20260102030405006"
_WAIT_S = 60.0

CLIENTS = 4
"""Connections of those that are far. One takes ``ServiceSettings.inflight_count`` (64) requests at once, and 1,000 a
second that take 100 ms are 112."""

BARE_S = 2.0
"""How long the least program is asked."""

RUNS = 5
"""Of which the worst is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceLoad:
    """What comes, and how long the store takes."""

    put_s: float
    rate: float | None
    """Requests a second; None: quiet."""
    is_far: bool
    """Whether the network is in it."""
    seconds: float = 5.0
    warm_up_s: float = 1.0
    """Before that: the same, and not counted."""

    @property
    def ratio_max(self) -> float:
        """What the mean ack may be, in mean puts."""
        return 1.03 if self.rate is None else 1.15

    def __str__(self) -> str:
        come = "quiet" if self.rate is None else f"{self.rate:,.0f} requests/s"
        return f"a put takes {self.put_s * 1000:g} ms, {come}, {'by the network' if self.is_far else 'in process'}"


LOADS = tuple(
    PaceLoad(put_s=put_s, rate=rate, is_far=put_s >= 0.03) for put_s in (0.002, 0.03, 0.1) for rate in (None, 1000.0)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceCost:
    """What came of a load."""

    load: PaceLoad
    acks: int
    ack_s: float
    """Mean, from asking to the answer."""
    put_s: float
    """Mean, by the measured wrapper."""
    puts_per_s: float
    """All that were done, merges included."""
    bare_ratio: float
    """What the least program came to, quietly, in the same minute."""

    @property
    def model_ratio(self) -> float:
        """What the arithmetic of paced group commit comes to at the mean put."""
        if self.load.rate is None:
            return 1.0
        return ack_s(self.load.rate, self.put_s / PUTS_PER_PUT_TIME, self.put_s) / self.put_s

    @property
    def least_ratio(self) -> float:
        return self.model_ratio + self.bare_ratio - 1

    @property
    def ratio(self) -> float:
        return self.ack_s / self.put_s

    @property
    def puts_per_put(self) -> float:
        """Puts begun in the time of one."""
        return self.puts_per_s * self.put_s

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio, "least_ratio": self.least_ratio}

    def __str__(self) -> str:
        return (
            f"{self.load}: mean ack {self.ack_s * 1e3:.3f} ms / mean put {self.put_s * 1e3:.3f} ms = {self.ratio:.3f} "
            f"(at most {self.load.ratio_max}; the least possible {self.least_ratio:.3f}), "
            f"{self.puts_per_s:,.1f} puts/s, {self.puts_per_put:.2f} in a put's time"
        )


def measure_pace_cost(load: PaceLoad, logs: Path | None = None) -> PaceCost:
    """Blocking, some ``load.seconds`` and ``BARE_S``. ``logs`` takes what the service says on standard error.

    Raises ChildFailed.
    """
    if not load.is_far:
        return trio.run(_near, load, _bare_ratio(load))
    if logs is None:
        with tempfile.TemporaryDirectory() as folder:
            return measure_pace_cost(load, Path(folder))
    bare = _bare_ratio(load)
    with child(_SERVER, logs / "pace-server.log") as server:
        told = server.ask({"put_s": load.put_s, "settings": {}})
        address = ServiceAddress(told["host"], told["port"], bytes.fromhex(told["job_key"]))
        with ExitStack() as stack:
            clients = [stack.enter_context(JobClient(address, _INSTANT, wait_s=_WAIT_S)) for _ in range(CLIENTS)]
            return _far(load, server, clients, bare)


def worst_of(load: PaceLoad, runs: int = RUNS) -> PaceCost:
    """The one of several runs with the highest ratio."""
    return max((measure_pace_cost(load) for _ in range(runs)), key=lambda cost: cost.ratio)


def _bare_ratio(load: PaceLoad) -> float:
    return bare_ratio(load.put_s, is_far=load.is_far, seconds=min(load.seconds, BARE_S))


async def _near(load: PaceLoad, bare: float) -> PaceCost:
    meter = PutMeter()
    async with open_marker_engine(MeasuredBackend(DelayedMemory(load.put_s), meter)) as engine:
        directory = engine.directory(_INSTANT)
        names = _names()
        await _ask_near(directory, names, load, load.warm_up_s)
        puts, puts_s, begun = meter.puts, meter.puts_s, time.monotonic()
        acks = await _ask_near(directory, names, load, load.seconds)
        return _cost(load, acks, meter.puts - puts, meter.puts_s - puts_s, time.monotonic() - begun, bare)


async def _ask_near(directory: MarkerDirectory, names: "_Names", load: PaceLoad, seconds: float) -> Sequence[float]:
    """Seconds that each ack took."""
    acks: list[float] = []

    async def ask() -> None:
        asked = time.perf_counter()
        await directory.create(names())
        acks.append(time.perf_counter() - asked)

    ends = anyio.current_time() + seconds
    if load.rate is None:
        while anyio.current_time() < ends:
            await ask()
        return acks
    due, random = anyio.current_time(), Random(0)  # noqa: S311 no secret
    async with anyio.create_task_group() as tasks:
        while (due := due + random.expovariate(load.rate)) < ends:
            await trio.sleep_until(due)
            tasks.start_soon(ask)
    return acks


def _far(load: PaceLoad, server: Child, clients: Sequence[JobClient], bare: float) -> PaceCost:
    names = _names()
    _ask_far(clients, names, load, load.warm_up_s)
    first, begun = server.ask({}), time.monotonic()
    acks = _ask_far(clients, names, load, load.seconds)
    last, took_s = server.ask({}), time.monotonic() - begun
    return _cost(load, acks, last["puts"] - first["puts"], last["puts_s"] - first["puts_s"], took_s, bare)


def _ask_far(clients: Sequence[JobClient], names: "_Names", load: PaceLoad, seconds: float) -> Sequence[float]:
    """Seconds that each ack took."""
    acks: list[float] = []
    turns = cycle(clients)

    def ask() -> Future[None]:
        asked = time.perf_counter()
        future = next(turns).request([names()])
        future.add_done_callback(lambda _: acks.append(time.perf_counter() - asked))
        return future

    ends = time.monotonic() + seconds
    if load.rate is None:
        while time.monotonic() < ends:
            asked = time.perf_counter()
            next(turns).create([names()])
            acks.append(time.perf_counter() - asked)
        return acks
    due, random, asks = time.monotonic(), Random(0), list[Future[None]]()  # noqa: S311 no secret
    clock = threading.Event()
    while (due := due + random.expovariate(load.rate)) < ends:
        clock.wait(max(due - time.monotonic(), 0.0))
        asks.append(ask())
    for each in asks:
        each.result(_WAIT_S)
    return acks


def _cost(
    load: PaceLoad, acks: Sequence[float], puts: int, puts_s: float, took_s: float, bare_ratio: float
) -> PaceCost:
    return PaceCost(
        load=load,
        acks=len(acks),
        ack_s=statistics.fmean(acks),
        put_s=puts_s / puts,
        puts_per_s=puts / took_s,
        bare_ratio=bare_ratio,
    )


_Names = Callable[[], str]


def _names() -> _Names:
    """Names of data files, none twice."""
    numbers = count()
    return lambda: f"year=2026/month=01/{next(numbers):08x}-7d1c-4b0a-9b57-0_0-4-0_{_INSTANT}.parquet"


if __name__ == "__main__":
    for each in LOADS:
        print(worst_of(each), flush=True)  # noqa: T201 a program
