"""The process of some clients of the service: each keeps so many requests in flight, and asks anew as acks come.

``raw`` clients put each request on the wire by itself, one connection each, and one thread serves them all: what the
service makes of that many requests. ``job`` clients are those that tasks use, asked by several threads each: what
callers get, whatever the client makes of their asks on the wire.

One line of JSON comes in and says what to do; one goes out when all is open; one comes in with the moments, by the
machine's monotonic clock, at which to begin, to count and to end; one goes out with what was counted.
"""

import json
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TextIO

from tallymark.bench.markers.raw_connection import RawConnection
from tallymark.bench.markers.throughput_server import INSTANT
from tallymark.engine.rpc.client import JobClient
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.rpc.messages import Ack, CreateMarkers

_WAIT_S = 60.0

now = time.monotonic


@dataclass(slots=True)
class Count:
    """Of one thread: what was asked and acked from ``count_at`` to ``end_at``."""

    count_at: float
    end_at: float
    acked: list[float] = field(default_factory=list)
    """How long each request waited for its ack."""
    cpu_s: float = 0.0
    _began: float | None = None

    def goes_on(self, at: float) -> bool:
        """To be asked before each round."""
        if self._began is None and at >= self.count_at:
            self._began = time.process_time()
        if at < self.end_at:
            return True
        self.cpu_s = time.process_time() - (self._began or 0.0)
        return False

    def add(self, asked_at: float, at: float) -> None:
        if self._began is not None:
            self.acked.append(at - asked_at)


def paths(who: str) -> Iterator[str]:
    """Names of data files as tasks make them, none twice."""
    number = 0
    while True:
        number += 1
        month = f"year=2026/month={1 + number % 12:02}"
        yield f"{month}/{number:08x}-7d1c-4b0a-9b57-{who:0>12}-0_{number}-4-{number}_{INSTANT}.parquet"


class RawClient:
    """Keeps ``inflight`` requests of ``names`` markers each on the wire."""

    def __init__(self, address: ServiceAddress, who: str, *, inflight: int, names: int) -> None:
        self.call = RawConnection(address, INSTANT, timeout_s=_WAIT_S)
        self._paths = paths(who)
        self._names = names
        self._free = inflight
        self._last_id = 0
        self._asked: dict[int, float] = {}

    def ask(self) -> None:
        """As many as may be in flight."""
        at = now()
        for _ in range(self._free):
            self._last_id += 1
            self._asked[self._last_id] = at
            self.call.send(CreateMarkers(self._last_id, tuple(next(self._paths) for _ in range(self._names)), "CREATE"))
        self._free = 0

    def exchange(self, count: Count) -> None:
        """Send and receive what can be, without waiting."""
        for answer in self.call.exchange():
            assert isinstance(answer, Ack), answer
            count.add(self._asked.pop(answer.id), now())
            self._free += 1


def drive_raw(clients: list[RawClient], count: Count) -> None:
    """All clients in this thread. A request is sent as soon as there is room for it."""
    poll = select.poll()
    by_descriptor = {client.call.fileno(): client for client in clients}
    for descriptor in by_descriptor:
        poll.register(descriptor, select.POLLIN)
    ready = list(clients)
    while count.goes_on(now()):
        for client in ready:
            client.ask()
            client.exchange(count)
        ready = [by_descriptor[descriptor] for descriptor, _ in poll.poll(100)]
        for client in ready:
            client.exchange(count)


def drive_job(client: JobClient, who: str, count: Count, *, inflight: int, names: int) -> None:
    """One thread of those that share a client: waits for its oldest ask once so many are in flight."""
    made, asked = paths(who), deque[tuple[float, Future[None]]]()
    while count.goes_on(now()):
        while len(asked) < inflight:
            asked.append((now(), client.request([next(made) for _ in range(names)])))
        began, oldest = asked.popleft()
        oldest.result()
        count.add(began, now())


def main(lines: TextIO, answers: TextIO) -> None:
    asked = json.loads(lines.readline())
    address = ServiceAddress(asked["host"], asked["port"], bytes.fromhex(asked["job_key"]))
    run = _run_raw if asked["kind"] == "raw" else _run_job
    run(asked, address, lines, answers)


def _run_raw(asked: Mapping[str, Any], address: ServiceAddress, lines: TextIO, answers: TextIO) -> None:
    each = {"inflight": asked["inflight"], "names": asked["names"]}
    clients = [RawClient(address, f"{asked['number']:x}{n:02x}", **each) for n in range(asked["connections"])]
    count = _opened(lines, answers)
    drive_raw(clients, count)
    _answer(answers, {"acked_s": count.acked, "cpu_s": count.cpu_s})


def _run_job(asked: Mapping[str, Any], address: ServiceAddress, lines: TextIO, answers: TextIO) -> None:
    client = JobClient(address, INSTANT, wait_s=_WAIT_S)
    client.create([next(paths(f"{asked['number']:x}fff"))])
    begun = _opened(lines, answers)
    counts = [Count(begun.count_at, begun.end_at) for _ in range(asked["threads"])]
    each = {"inflight": asked["inflight"], "names": asked["names"]}
    threads = [
        threading.Thread(target=drive_job, args=(client, f"{asked['number']:x}{n:02x}", count), kwargs=each)
        for n, count in enumerate(counts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()
    acked = [waited for count in counts for waited in count.acked]
    _answer(answers, {"acked_s": acked, "cpu_s": max(count.cpu_s for count in counts)})


def _opened(lines: TextIO, answers: TextIO) -> Count:
    """Say that all is open, and wait for the moment to begin at."""
    _answer(answers, {"open": True})
    told = json.loads(lines.readline())
    threading.Event().wait(max(told["begin"] - now(), 0.0))
    return Count(told["count"], told["end"])


def _answer(answers: TextIO, fields: Mapping[str, Any]) -> None:
    answers.write(json.dumps(fields) + "\n")
    answers.flush()


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
