"""Connections of programs without a key to a job's service, thousands of them: what they cost the job.

Silent ones, and ones that send garbage, all of this machine and to this machine, bounded in count and time. Meanwhile
clients of the job ask for markers, over one connection each, and over a new one now and then.

Run as ``python -m tests.system.strangers --connections 20000 --descriptors 1024``.
"""

import argparse
import resource
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tallymark.engine.errors import TallymarkError
from tallymark.engine.rpc.client import JobClient
from tallymark.engine.rpc.handshake import ServiceAddress
from tests.system.forked import forking
from tests.system.marker_service import Store, serve

INSTANT = "20261121000000000"
CLIENTS = 4
REQUESTS_OF_CONNECTION = 25
"""After which a client connects anew."""
WAIT_S = 60.0
GARBAGE = (b"", b"", b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x20" + b"x" * 32, b"\xff" * 64)
"""What a stranger sends, if anything."""
LASTS_S_MAX = 60.0
OPEN_MAX = 2000
"""Connections that the strangers have at once, as they see it."""
HOSTS = [f"127.0.0.{number}" for number in range(2, 34)]
"""Where they come from: one address has ports for 28,000 connections."""


@dataclass(frozen=True, slots=True)
class Flooded:
    """The strangers have made all their connections, or their time is over."""

    connections: int
    seconds: float


@dataclass(slots=True)
class Acks:
    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        return sorted(self.seconds)[min(int(share * len(self.seconds)), len(self.seconds) - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    flooded: Flooded
    acks: Acks
    memory_bytes: int
    """The service's peak."""


def strangers(line: Connection, address: ServiceAddress, count: int, per_s: float) -> None:
    """The program of the strangers."""
    random, began, made = Random(1), time.monotonic(), 0
    with selectors.DefaultSelector() as opened:
        while made < count and time.monotonic() < began + LASTS_S_MAX:
            if (early_s := began + made / per_s - time.monotonic()) > 0.01:
                _drop_closed(opened, early_s)
                continue
            with suppress(OSError):
                source = (random.choice(HOSTS), 0)
                raw = socket.create_connection((address.host, address.port), timeout=5, source_address=source)
                made += 1
                raw.setblocking(False)
                opened.register(raw, selectors.EVENT_READ)
                raw.send(random.choice(GARBAGE))
            if made % 64 == 0 or len(opened.get_map()) >= OPEN_MAX:
                _drop_closed(opened, 0.01 if len(opened.get_map()) >= OPEN_MAX else 0)
        line.send(Flooded(made, time.monotonic() - began))


def _drop_closed(opened: selectors.BaseSelector, wait_s: float) -> None:
    for key, _ in opened.select(wait_s):
        raw = key.fileobj
        assert isinstance(raw, socket.socket)
        with suppress(BlockingIOError):
            try:
                is_over = not raw.recv(4096)
            except ConnectionError:
                is_over = True
            if is_over:
                opened.unregister(raw)
                raw.close()


def limited_service(line: Connection, store: Store, descriptors: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    serve(line, store, INSTANT, "trio")


def cost_of_strangers(folder: Path, connections: int, descriptors: int, *, per_s: float) -> Cost:
    """What the job's clients saw while so many strangers connected."""
    is_over, acks = threading.Event(), [Acks() for _ in range(CLIENTS)]
    with forking() as start:
        service = start(limited_service, Store(str(folder)), descriptors)
        address = service.hear(ServiceAddress)
        clients = [
            threading.Thread(target=_ask, args=(address, number, acks[number], is_over.is_set))
            for number in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        flooded = start(strangers, address, connections, per_s).hear(Flooded)
        is_over.set()
        for client in clients:
            client.join()
        status = Path(f"/proc/{service.pid}/status").read_text()
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    seconds = [each for some in acks for each in some.seconds]
    errors = [each for some in acks for each in some.errors]
    return Cost(flooded=flooded, acks=Acks(seconds, errors), memory_bytes=int(peak) * 1024)


def _ask(address: ServiceAddress, number: int, acks: Acks, is_over: Callable[[], bool]) -> None:
    asked = 0
    while not is_over():
        with JobClient(address, INSTANT, wait_s=WAIT_S) as client:
            for _ in range(REQUESTS_OF_CONNECTION):
                began, asked = time.monotonic(), asked + 1
                try:
                    client.create([f"month={number}/{asked}.parquet"])
                except TallymarkError as error:
                    acks.errors.append(repr(error))
                else:
                    acks.seconds.append(time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--connections", type=int, default=20_000)
    parser.add_argument("--descriptors", type=int, default=1024, help="of the service's process (ulimit -n)")
    parser.add_argument("--per-second", type=float, default=2000.0, help="connections that the strangers make")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        cost = cost_of_strangers(Path(folder), arguments.connections, arguments.descriptors, per_s=arguments.per_second)
    acks = cost.acks
    print(
        f"{cost.flooded.connections} strangers in {cost.flooded.seconds:.1f} s at ulimit -n {arguments.descriptors}: "
        f"{len(acks.seconds)} acks, {len(acks.errors)} errors, median {acks.quantile(0.5) * 1e3:.1f} ms, "
        f"p99 {acks.quantile(0.99) * 1e3:.0f} ms, longest {acks.quantile(1) * 1e3:.0f} ms; "
        f"peak memory {cost.memory_bytes / 2**20:.0f} MiB"
    )
    for error in acks.errors[:3]:
        print(error)


if __name__ == "__main__":
    main()
