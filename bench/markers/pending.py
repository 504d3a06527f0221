"""What a service holds while nothing is answered: a million requests wait, and its memory does not grow with them.

Storage is silent. A million requests of one marker each are written to connections: the service reads no more than
``inflight_count`` of each, and the rest waits in sockets and with those who ask. Then requests of many markers each
come over new connections, until ``queue_limit`` refuses what would pass it, and says when to come back.
``python -m tallymark.bench.markers.pending`` prints both.
"""

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tallymark.bench.markers.raw_connection import RawConnection
from tallymark.bench.markers.throughput_client import paths
from tallymark.bench.markers.throughput_server import INSTANT
from tallymark.bench.views.child import Child, child
from tallymark.engine.errors import Overloaded
from tallymark.engine.rpc.client import JobClient
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.rpc.messages import CreateMarkers, Refusal
from tallymark.engine.settings import ServiceSettings

_SERVER = "tallymark.bench.markers.throughput_server"
_SILENT_S = 3600.0
_TIMEOUT_S = 30.0
_SAYING = 1000
"""Requests that a connection is given before it sends what it can."""
_SETTLE_S = 0.5
"""For the service to have read what it reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    asked: int
    """Requests of one marker each that somebody waits for."""
    inflight: int
    """Of these, those that the service has read."""
    grown_bytes: int
    """What its process grew by meanwhile, its connections included."""
    names: int
    """Markers of requests of many that the service has taken then."""
    name_bytes: int
    """What its process grew by for each."""
    refused: int
    """Of these requests, those that it has refused as Overloaded."""
    retry_after_s: float
    """The shortest pause that such a refusal asked for."""

    def __str__(self) -> str:
        return (
            f"{self.asked:,} requests asked: {self.inflight:,} in flight, and the service grew by "
            f"{self.grown_bytes / 1e6:.1f} MB; {self.names:,} markers taken at {self.name_bytes:,} bytes each, then "
            f"{self.refused:,} requests refused as Overloaded, to come back after {self.retry_after_s:g} s"
        )


def measure_pending(*, asked: int = 1_000_000, connections: int = 32, many: int = 100) -> Pending:
    """Blocking, some 20 s. ``many``: markers of each request of the second part. Raises ChildFailed."""
    with tempfile.TemporaryDirectory() as folder, child(_SERVER, Path(folder) / "server.log") as server:
        told = server.ask({"put_s": 0.0, "settings": {"flush_timeout_s": _SILENT_S}})
        address = ServiceAddress(told["host"], told["port"], bytes.fromhex(told["job_key"]))
        with JobClient(address, INSTANT, wait_s=_TIMEOUT_S) as client:
            client.create(list(islice(paths("0"), 1)))  # what a first marker needs besides is in storage then
        first = server.ask({"put_s": _SILENT_S})
        with _calls(address, connections) as calls:
            for number, call in enumerate(calls):
                _ask(call, f"a{number:x}", asked // connections, 1)
            singles = _settled(server)
            with _calls(address, connections) as more:
                for number, call in enumerate(more):
                    _ask(call, f"b{number:x}", ServiceSettings().inflight_count, many)
                full = _settled(server)
                pauses = [pause_s for call in more for pause_s in _refusals(call)]
        names = full["pending"] - singles["pending"]
        return Pending(
            asked=asked,
            inflight=singles["inflight"],
            grown_bytes=singles["rss_bytes"] - first["rss_bytes"],
            names=names,
            name_bytes=(full["rss_bytes"] - singles["rss_bytes"]) // names,
            refused=len(pauses),
            retry_after_s=min(pauses),
        )


@contextmanager
def _calls(address: ServiceAddress, count: int) -> Iterator[list[RawConnection]]:
    calls = [RawConnection(address, INSTANT, timeout_s=_TIMEOUT_S) for _ in range(count)]
    try:
        yield calls
    finally:
        for call in calls:
            call.close()


def _ask(call: RawConnection, who: str, count: int, many: int) -> None:
    """Send of so many requests what the service takes."""
    made = paths(who)
    for number in range(1, count + 1):
        call.send(CreateMarkers(number, tuple(islice(made, many)), "CREATE"))
        if number % _SAYING == 0 or number == count:
            _listen(call)


def _listen(call: RawConnection) -> list[Any]:
    return call.exchange()


def _refusals(call: RawConnection) -> Iterator[float]:
    """The pauses that those at hand ask for."""
    for answer in _listen(call):
        if isinstance(answer, Refusal) and isinstance(answer.error, Overloaded):
            yield answer.error.retry_after_s


def _settled(server: Child) -> dict[str, Any]:
    """A reading once the service reads no more."""
    last: dict[str, Any] = {}
    while (now := server.ask({}))["requests"] != last.get("requests"):
        last = now
        threading.Event().wait(_SETTLE_S)
    return now


if __name__ == "__main__":
    print(measure_pending())  # noqa: T201 a program
