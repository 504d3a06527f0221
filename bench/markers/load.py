"""The parent's end of callers: start their processes, let them begin together, gather what they saw."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import chain, count
from pathlib import Path
from statistics import fmean
from typing import Any

from tallymark.bench.markers.talk import Address
from tallymark.bench.views.child import Child, child
from tallymark.bench.views.latency import Latency
from tallymark.bench.views.schedule import Schedule

HEAD_START_S = 0.3
"""Between the word to begin and the beginning: for all processes to have read it."""

_series = count(1)
"""No two processes of a run ask for the same markers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What callers are to do, each with one marker in flight at a time."""

    connections: int
    processes: int = 2
    """That the connections are in, about as many in each."""
    rate: float | None = None
    """Markers a second of all connections together, at random moments. None: each asks as soon as it has its answer."""
    seconds: float = 0.0
    warm_up_s: float = 0.0
    """Before that: asked in the same way, and not counted."""
    count: int | None = None
    """So many markers instead of seconds."""

    def __str__(self) -> str:
        if self.count is not None:
            return f"{self.count:,} markers by {self.connections} callers"
        how = "as fast as they are answered" if self.rate is None else f"{self.rate:g} a second"
        return f"{self.connections} callers, {how}"

    def shares(self) -> list[dict[str, object]]:
        """What each process is told."""
        processes = min(self.processes, self.connections)
        return [
            self._share(_part(self.connections, number, processes), number, processes) for number in range(processes)
        ]

    def _share(self, connections: int, number: int, processes: int) -> dict[str, object]:
        if self.count is not None:
            return {"connections": connections, "count": _part(self.count, number, processes)}
        times = {"seconds": self.seconds, "warm_up_s": self.warm_up_s}
        if self.rate is None:
            return {"connections": connections, **times}
        schedule = Schedule(
            rate=self.rate * connections / self.connections, connections=connections, processes=1, **times
        )
        return {"connections": connections, "schedule": asdict(schedule)}


def _part(whole: int, number: int, parts: int) -> int:
    return whole // parts + (number < whole % parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """By callers. Those of several loads may be joined."""

    latency_s: tuple[float, ...]
    """From when a marker was due to its ack, without the warm-up."""
    counted_s: float
    """In which those were acked."""
    answered: int
    """With the warm-up."""
    received_bytes: int
    caller_cpu_s: float

    @property
    def latency(self) -> Latency:
        return Latency.of(self.latency_s)

    @property
    def mean_s(self) -> float:
        return fmean(self.latency_s)

    @property
    def rate(self) -> float:
        """Acked markers a second."""
        return len(self.latency_s) / self.counted_s

    def __add__(self, other: "Seen") -> "Seen":
        return Seen(
            latency_s=self.latency_s + other.latency_s,
            counted_s=self.counted_s + other.counted_s,
            answered=self.answered + other.answered,
            received_bytes=self.received_bytes + other.received_bytes,
            caller_cpu_s=self.caller_cpu_s + other.caller_cpu_s,
        )


def seen(address: Address, load: Load, logs: Path) -> Seen:
    """What the callers see. ``address`` also says which program they are, and in how many processes if not the load's.

    Raises ChildFailed.
    """
    shares = replace(load, processes=address.get("processes", load.processes)).shares()
    with ExitStack() as stack:
        callers = [_caller(stack, address, share, logs / f"caller-{n}.log") for n, share in enumerate(shares)]
        for caller in callers:
            caller.answer()
        begin = time.monotonic() + HEAD_START_S
        for caller in callers:
            caller.tell({"begin": begin})
        answers = [caller.answer() for caller in callers]
    ended = max(answer["ended"] for answer in answers)
    return Seen(
        latency_s=tuple(chain.from_iterable(answer["latency_s"] for answer in answers)),
        counted_s=max(ended - begin - load.warm_up_s, load.seconds),
        answered=sum(answer["answered"] for answer in answers),
        received_bytes=sum(answer["received_bytes"] for answer in answers),
        caller_cpu_s=sum(answer["cpu_s"] for answer in answers),
    )


def _caller(stack: ExitStack, address: Address, share: Mapping[str, Any], log: Path) -> Child:
    found = stack.enter_context(child(address["program"], log))
    found.tell({"address": dict(address), "series": next(_series), **share})
    return found
