"""How many markers a service acks in a second, and what a request costs the CPU on either side.

The service is a process of its own, on a store in memory whose puts take as long as told; its clients are in other
processes, as tasks are. ``python -m tallymark.bench.markers.throughput`` measures both loads of ``LOADS``.
"""

import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from tallymark.bench.views.child import Child, child
from tallymark.bench.views.latency import Latency

_SERVER = "tallymark.bench.markers.throughput_server"
_CLIENT = "tallymark.bench.markers.throughput_client"

HEAD_START_S = 0.2
"""Between the word to begin and the beginning: for all processes to have read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputLoad:
    """A closed loop: whoever has an ack asks for the next marker."""

    kind: Literal["raw", "job"] = "raw"
    """``raw``: each request goes on the wire by itself. ``job``: threads share the client that tasks use."""
    processes: int = 4
    connections: int = 32
    """Of ``raw``, of all processes together. A ``job`` client has one a process."""
    threads: int = 4
    """Of ``job``, of one process."""
    inflight: int = 16
    """Requests of a connection, or asks of a thread, that wait for their acks at once."""
    names: int = 1
    """Markers in each."""
    put_s: float = 0.002
    seconds: float = 10.0
    warm_up_s: float = 2.0
    """Before that: asked in the same way, and not counted."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of ``MarkerSettings``, where they are not the defaults."""

    def __str__(self) -> str:
        put = f"a put takes {self.put_s * 1000:g} ms"
        if self.kind == "raw":
            who = (
                f"{self.connections} connections of {self.processes} processes, {self.inflight} requests each in flight"
            )
            return f"{who}, markers a request: {self.names}; {put}"
        who = f"{self.processes} processes of {self.threads} threads, {self.inflight} asks each in flight"
        return f"{who}, markers an ask: {self.names}; {put}"


LOADS = (
    ThroughputLoad(),
    ThroughputLoad(kind="job", inflight=64),
    ThroughputLoad(kind="job", inflight=16, names=16),
)
"""One request a marker on the wire, as by a client that coalesces nothing; asks of one marker each, which the client
joins; and asks of several, as tasks make that know their next files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """What came of a load."""

    load: ThroughputLoad
    markers_s: float
    """Acked a second."""
    asks_s: float
    """Calls of clients that were acked a second; of ``raw`` ones these are requests."""
    requests_s: float
    """Answered by the service a second."""
    server_cpu_us: float
    """Of the service's process, a request that it answered: the engine and its store included."""
    client_cpu_us: float
    """Of the clients' processes, an ask: making the names included."""
    server_cpu_us_marker: float
    client_cpu_us_marker: float
    flushes_s: float
    ack: Latency

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "load": {**asdict(self.load), "settings": dict(self.load.settings)}}

    def __str__(self) -> str:
        return (
            f"{self.markers_s:,.0f} acked markers/s, {self.requests_s:,.0f} requests/s, {self.flushes_s:,.0f} puts/s; "
            f"CPU {self.server_cpu_us:.1f} us a request in the service and {self.client_cpu_us:.1f} us an ask in the "
            f"clients, a marker {self.server_cpu_us_marker:.2f} and {self.client_cpu_us_marker:.2f} us; "
            f"ack p50 {self.ack.p50_s * 1000:.1f}, p99 {self.ack.p99_s * 1000:.1f} ms"
        )


def measure_throughput(load: ThroughputLoad, logs: Path | None = None) -> Throughput:
    """Blocking, some ``load.seconds``. ``logs`` takes what the processes say on standard error. Raises ChildFailed."""
    if logs is None:
        with tempfile.TemporaryDirectory() as folder:
            return measure_throughput(load, Path(folder))
    with ExitStack() as stack:
        server = stack.enter_context(child(_SERVER, logs / "throughput-server.log"))
        address = server.ask({"put_s": load.put_s, "settings": dict(load.settings)})
        clients = [
            stack.enter_context(child(_CLIENT, logs / f"throughput-client-{number}.log"))
            for number in range(load.processes)
        ]
        for number, client in enumerate(clients):
            client.tell({**address, "number": number, **_told(load)})
        for client in clients:
            client.answer()
        return _measured(load, server, clients)


def _told(load: ThroughputLoad) -> dict[str, Any]:
    connections = load.connections // load.processes
    told = {"kind": load.kind, "inflight": load.inflight, "names": load.names}
    return {**told, "connections": connections, "threads": load.threads}


def _measured(load: ThroughputLoad, server: Child, clients: Sequence[Child]) -> Throughput:
    begin = time.monotonic() + HEAD_START_S
    count = begin + load.warm_up_s
    for client in clients:
        client.tell({"begin": begin, "count": count, "end": count + load.seconds})
    _rest_until(count)
    first, began = server.ask({}), time.monotonic()
    _rest_until(began + load.seconds * 0.9)  # before the first of the clients ends
    last, took_s = server.ask({}), time.monotonic() - began
    answers = [client.answer() for client in clients]
    acked = list(chain.from_iterable(answer["acked_s"] for answer in answers))
    client_cpu_us = sum(answer["cpu_s"] for answer in answers) / len(acked) * 1e6
    requests, markers = last["requests"] - first["requests"], last["durable"] - first["durable"]
    server_cpu_us = (last["cpu_s"] - first["cpu_s"]) * 1e6
    return Throughput(
        load=load,
        markers_s=markers / took_s,
        asks_s=markers / took_s / load.names,
        requests_s=requests / took_s,
        server_cpu_us=server_cpu_us / requests,
        client_cpu_us=client_cpu_us,
        server_cpu_us_marker=server_cpu_us / markers,
        client_cpu_us_marker=client_cpu_us / load.names,
        flushes_s=(last["flushes"] - first["flushes"]) / took_s,
        ack=Latency.of(acked),
    )


def _rest_until(moment: float) -> None:
    threading.Event().wait(max(moment - time.monotonic(), 0.0))


if __name__ == "__main__":
    for each in LOADS:
        print(f"{each}\n  {measure_throughput(each)}", flush=True)  # noqa: T201 a program
