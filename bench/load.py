"""Load generator: callers in processes of their own, which send requests on a schedule or as fast as they get answers.

A target is a JSON object; its ``open`` names the class (``module:name``) that sends requests to one side:

    target(fields, series)   opens one connection; ``series`` is different for each connection of a run

``style`` of the class selects who waits for the answers:

    poll     fileno(), ask(slot), answered() -> slots     one thread and one epoll for all connections of a process
    thread   ask()                                        blocks; one thread per request in flight
    task     await ask(), within ``async with``           one task per request in flight

Owns: when a request is due, and how long its answer took from then (coordinated omission is corrected).
"""

import functools
import gc
import heapq
import json
import select
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, count, islice
from pathlib import Path
from pkgutil import resolve_name
from random import Random
from statistics import fmean
from typing import Any, TextIO

from tallymark.bench.child import answer, child

Target = Mapping[str, Any]

HEAD_START_S = 0.3
"""From the message to start until the start: each process has read it by then."""

now = time.monotonic
"""One clock for all processes of the machine."""

_series = count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the callers do, each with one request in flight at a time."""

    connections: int
    processes: int = 2
    inflight: int = 1
    """Requests of a connection that wait for their answers at once."""
    rate: float | None = None
    """Requests per second of all connections together, a Poisson process. None: each follows the answer before it."""
    seconds: float = 0.0
    warm_up_s: float = 0.0
    """Before that: the same load, not counted."""
    count: int | None = None
    """Requests in all, instead of seconds."""

    def __str__(self) -> str:
        if self.count is not None:
            return f"{self.count:,} markers by {self.connections} callers"
        how = "as fast as they are answered" if self.rate is None else f"{self.rate:,.0f} per second"
        return f"{self.connections} callers, {how}"

    def shares(self) -> list[dict[str, Any]]:
        """Return the part of the load that each process has."""
        processes = min(self.processes, self.connections)
        return [
            {
                **asdict(self),
                "connections": _part(self.connections, number, processes),
                "rate": self.rate and self.rate / (self.connections * self.inflight),
                "count": None if self.count is None else _part(self.count, number, processes),
            }
            for number in range(processes)
        ]


def _part(whole: int, number: int, parts: int) -> int:
    return whole // parts + (number < whole % parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Seconds; each quantile is one of the samples: the smallest which that share of them does not exceed."""

    count: int
    p50_s: float
    p99_s: float
    p999_s: float
    max_s: float

    @classmethod
    def of(cls, samples_s: Sequence[float]) -> "Latency":
        found = sorted(samples_s)
        assert found, "no request was answered"

        def quantile(share: float) -> float:
            return found[max(0, -(-int(share * 1000 * len(found)) // 1000) - 1)]

        return cls(count=len(found), p50_s=quantile(0.5), p99_s=quantile(0.99), p999_s=quantile(0.999), max_s=found[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the callers of one or several loads saw."""

    latency_s: tuple[float, ...]
    """From when a request was due to its answer, without the warm-up."""
    counted_s: float
    """Time in which those were answered."""
    answered: int
    """Including the warm-up."""
    within: float = 0.0
    """Answers in the time of the load; one that ends after it counts by its part before."""
    received_bytes: int = 0
    caller_cpu_s: float = 0.0
    """Of the callers' processes since the load started."""
    extra: Mapping[str, float] = field(default_factory=dict)
    """Sums of what the targets themselves have counted."""

    @property
    def latency(self) -> Latency:
        return Latency.of(self.latency_s)

    @property
    def mean_s(self) -> float:
        return fmean(self.latency_s)

    @property
    def rate(self) -> float:
        """Answers per second."""
        return len(self.latency_s) / self.counted_s

    def __add__(self, other: "Seen") -> "Seen":
        return Seen(
            latency_s=self.latency_s + other.latency_s,
            counted_s=self.counted_s + other.counted_s,
            answered=self.answered + other.answered,
            within=self.within + other.within,
            received_bytes=self.received_bytes + other.received_bytes,
            caller_cpu_s=self.caller_cpu_s + other.caller_cpu_s,
            extra=_added([self.extra, other.extra]),
        )


def _added(counts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in counts:
        found |= {name: found.get(name, 0) + value for name, value in each.items()}
    return found


def run_load(
    target: Target, load: Load, logs: Path, *, counting: Callable[[float], object] = lambda began: None
) -> Seen:
    """Return what callers see at this target. ``counting`` is called once the warm-up is over.

    Raises:
        ChildFailed: a caller has ended early.
    """
    with ExitStack() as stack:
        shares = replace(load, processes=target.get("processes", load.processes)).shares()
        callers = [
            stack.enter_context(child("tallymark.bench.load", logs / f"caller-{number}.log"))
            for number in range(len(shares))
        ]
        for caller, share in zip(callers, shares, strict=True):
            first, *_ = islice(_series, share["connections"])
            caller.tell({"target": dict(target), "first": first, "load": share})
        for caller in callers:
            caller.answer()
        begin = now() + HEAD_START_S
        for caller in callers:
            caller.tell({"begin": begin})
        threading.Event().wait(max(0.0, begin + load.warm_up_s - now()))
        counting(begin)
        answers = [caller.answer() for caller in callers]
    return Seen(
        latency_s=tuple(chain.from_iterable(each["latency_s"] for each in answers)),
        counted_s=max(max(each["ended"] for each in answers) - begin - load.warm_up_s, load.seconds),
        answered=sum(each["answered"] for each in answers),
        within=sum(each["within"] for each in answers),
        received_bytes=sum(each["received_bytes"] for each in answers),
        caller_cpu_s=sum(each["cpu_s"] for each in answers),
        extra=_added(each["extra"] for each in answers),
    )


NextDue = Callable[[float], float | None]
"""next_due(now) returns when the next request is due for a caller that is free now; None where there is none left."""


def open_loop(dues: Iterator[float]) -> NextDue:
    """Follow a schedule that does not depend on the answers. A late answer delays the requests after it, and each
    counts from when it was due.
    """
    return lambda _now: next(dues, None)


def closed_loop(*, until: float) -> NextDue:
    return lambda moment: moment if moment < until else None


def counted(left: int) -> NextDue:
    """Send this many requests, each after the answer before it."""
    numbers = iter(range(left))
    return lambda moment: None if next(numbers, None) is None else moment


@dataclass(slots=True)
class Calling:
    """The requests of one caller, one in flight at a time. Is given the time; does no I/O."""

    next_due: NextDue
    count_from: float
    """Requests that were due before are the warm-up."""
    until: float = float("inf")
    """End of the load."""
    due: float | None = None
    latency_s: list[float] = field(default_factory=list)
    answered: int = 0
    """Including the warm-up."""
    within: float = 0.0

    def begin(self, moment: float) -> None:
        self.due = self.next_due(moment)

    def heard(self, moment: float) -> None:
        assert self.due is not None
        self.answered += 1
        if self.due >= self.count_from:
            self.latency_s.append(moment - self.due)
            self.within += 1.0 if moment <= self.until else (self.until - self.due) / (moment - self.due)
        self.due = self.next_due(moment)


def callings(load: Mapping[str, Any], begin: float, random: Random) -> list[Calling]:
    """Return one for each request in flight of this process."""
    slots = load["connections"] * load["inflight"]
    count_from, until = begin + load["warm_up_s"], begin + load["warm_up_s"] + load["seconds"]
    found = []
    for number in range(slots):
        if load["count"] is not None:
            next_due = counted(_part(load["count"], number, slots))
        elif load["rate"] is not None:
            next_due = open_loop(poisson(load["rate"], begin, until, Random(random.random())))  # noqa: S311 no secret
        else:
            next_due = closed_loop(until=until)
        is_counted = load["count"] is not None
        found.append(Calling(next_due, begin) if is_counted else Calling(next_due, count_from, until))
    return found


def poisson(rate: float, begin: float, until: float, random: Random) -> Iterator[float]:
    """Yield the moments of a Poisson process of ``rate`` per second."""
    due = begin + random.expovariate(rate)
    while due < until:
        yield due
        due += random.expovariate(rate)


def poll_all(targets: Sequence[Any], slots: Sequence[Sequence[Calling]]) -> None:
    """Drive connections by one thread until no caller has a request left."""
    _Poll(targets, slots).run()


class _Poll:
    def __init__(self, targets: Sequence[Any], slots: Sequence[Sequence[Calling]]) -> None:
        self._targets = targets
        self._slots = slots
        self._dues: list[tuple[float, int, int]] = []
        self._waiting = 0
        self._poll = select.epoll()
        self._places = {target.fileno(): place for place, target in enumerate(targets)}
        for descriptor in self._places:
            self._poll.register(descriptor, select.EPOLLIN)

    def run(self) -> None:
        for place, its_slots in enumerate(self._slots):
            for slot, calling in enumerate(its_slots):
                calling.begin(now())
                self._push(place, slot)
        while self._dues or self._waiting:
            timeout_s = max(0.0, self._dues[0][0] - now()) if self._dues else None
            for descriptor, _ in self._poll.poll(timeout_s):
                self._receive(self._places[descriptor])
            self._send()

    def _push(self, place: int, slot: int) -> None:
        if (due := self._slots[place][slot].due) is not None:
            heapq.heappush(self._dues, (due, place, slot))

    def _receive(self, place: int) -> None:
        for slot in self._targets[place].answered():
            self._waiting -= 1
            self._slots[place][slot].heard(now())
            self._push(place, slot)

    def _send(self) -> None:
        places = set()
        while self._dues and self._dues[0][0] <= now():
            _, place, slot = heapq.heappop(self._dues)
            self._targets[place].ask(slot)
            self._waiting += 1
            places.add(place)
        for place in places:
            self._targets[place].flush()


def in_threads(targets: Sequence[Any], slots: Sequence[Sequence[Calling]]) -> None:
    failed: list[BaseException] = []

    def call(target: Any, calling: Calling) -> None:
        calling.begin(now())
        try:
            while calling.due is not None:
                if (left := calling.due - now()) > 0:
                    time.sleep(left)  # noqa: TID251 an Event takes twice the CPU
                target.ask()
                calling.heard(now())
        except Exception as error:
            failed.append(error)

    pairs = [(target, calling) for target, its_slots in zip(targets, slots, strict=True) for calling in its_slots]
    threads = [threading.Thread(target=call, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


async def in_tasks(targets: Sequence[Any], slots: Sequence[Sequence[Calling]]) -> None:
    import anyio

    async def call(target: Any, calling: Calling) -> None:
        calling.begin(now())
        while calling.due is not None:
            if (left := calling.due - now()) > 0:
                await anyio.sleep(left)
            await target.ask()
            calling.heard(now())

    try:
        async with anyio.create_task_group() as tasks:
            for target, its_slots in zip(targets, slots, strict=True):
                for calling in its_slots:
                    tasks.start_soon(call, target, calling)
    except ExceptionGroup as group:
        raise group.exceptions[0] from None  # its last line is what ``ChildFailed`` shows


def main(lines: TextIO, answers: TextIO) -> None:
    """Run one process of callers: read the load, report that all connections are open, start on request."""
    asked = json.loads(lines.readline())
    target, load, first = asked["target"], asked["load"], asked["first"]
    made = resolve_name(target["open"])
    if made.style == "task":
        import anyio

        anyio.run(functools.partial(_main_of_tasks, made, asked, lines, answers), backend="trio")
        return
    targets = [made(target, first + number) for number in range(load["connections"])]
    slots, every = _slots(load, targets, first, lines, answers)
    cpu_s = time.process_time()
    (poll_all if made.style == "poll" else in_threads)(targets, slots)
    _finish(answers, every, targets, cpu_s)


async def _main_of_tasks(made: Any, asked: Mapping[str, Any], lines: TextIO, answers: TextIO) -> None:
    target, load, first = asked["target"], asked["load"], asked["first"]
    async with _opened(made, target, first, load["connections"]) as targets:
        slots, every = _slots(load, targets, first, lines, answers)
        cpu_s = time.process_time()
        await in_tasks(targets, slots)
        _finish(answers, every, targets, cpu_s)


@asynccontextmanager
async def _opened(made: Any, target: Target, first: int, connections: int) -> AsyncIterator[list[Any]]:
    """Yield one target that all connections share, or one of each."""
    async with made.shared(target) as shared:
        yield [made(shared, target, first + number) for number in range(connections)]


def _slots(
    load: Mapping[str, Any], targets: Sequence[Any], first: int, lines: TextIO, answers: TextIO
) -> tuple[list[list[Calling]], list[Calling]]:
    """Wait for the start; return the callers of each target, and all of them."""
    answer(answers, {"open": len(targets)})
    begin = json.loads(lines.readline())["begin"]
    gc.freeze()
    every = callings(load, begin, Random(first))  # noqa: S311 no secret
    each = load["inflight"]
    threading.Event().wait(max(0.0, begin - now()))
    return [every[place * each : place * each + each] for place in range(len(targets))], every


def _finish(answers: TextIO, every: Sequence[Calling], targets: Sequence[Any], cpu_before_s: float) -> None:
    counting = targets[:1] if targets[0].style == "task" else targets  # tasks share what counts
    answer(
        answers,
        {
            "latency_s": [latency for calling in every for latency in calling.latency_s],
            "answered": sum(calling.answered for calling in every),
            "within": sum(calling.within for calling in every),
            "ended": now(),
            "received_bytes": sum(getattr(target, "received_bytes", 0) for target in targets),
            "cpu_s": time.process_time() - cpu_before_s,
            "extra": _added(getattr(target, "statistics", dict)() for target in counting),
        },
    )


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
