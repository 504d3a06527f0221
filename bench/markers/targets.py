"""Targets of the load generator that make markers durable: ours by its protocol or its client, ours without a service,
and Hudi's timeline server.
"""

import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count, islice
from typing import Any

from tallymark.backends import open_backend
from tallymark.bench.load import Target
from tallymark.bench.markers.memory import SlowMemory, constant
from tallymark.bench.peers.hudi_markers import HudiTalk
from tallymark.engine.markers import open_marker_engine
from tallymark.engine.markers.direct import create_direct
from tallymark.engine.markers.directory import always_open
from tallymark.engine.rpc.client import JobClient
from tallymark.engine.rpc.connection import ClientSession
from tallymark.engine.rpc.handshake import NONCE_BYTES, ServiceAddress
from tallymark.engine.rpc.messages import Ack, CreateMarkers, Refusal

READ_BYTES = 65536
CONNECT_TIMEOUT_S = 30.0
WAIT_S = 60.0

PARTITIONS = 300

MARKER_BYTES = 110
"""Of a line in a segment: the path, ``.marker.CREATE`` and a newline."""


def paths(instant: str, series: int) -> Iterator[str]:
    """Yield names of data files of 95 bytes, as tasks make them. Each series of an instant has other names."""
    for number in count():
        partition = f"event_date=2026-{1 + number % PARTITIONS // 28:02}-{1 + number % 28:02}"
        file_id = f"{series:08x}-0000-4000-8000-{number:012x}-0"
        yield f"{partition}/{file_id}_{number % 1000:04}-0-0_{instant}.parquet"


class OurService:
    """The protocol of a job's service: each request is one message of ``names`` markers."""

    style = "poll"

    def __init__(self, target: Target, series: int) -> None:
        self._raw = _connected(target)
        self._names, self._paths = target.get("names", 1), paths(target["instant"], series)
        address = _address(target)
        self._session = ClientSession(address, target["instant"], nonce=secrets.token_bytes(NONCE_BYTES))
        while not self._session.is_authenticated:
            self.flush()
            self._session.receive(self._raw.recv(READ_BYTES))
        self._raw.setblocking(False)
        self._slots: dict[int, int] = {}
        self._ids = count(1)
        self.received_bytes = 0

    def fileno(self) -> int:
        return self._raw.fileno()

    def ask(self, slot: int) -> None:
        number = next(self._ids)
        self._slots[number] = slot
        self._session.send(CreateMarkers(number, tuple(islice(self._paths, self._names)), "CREATE"))

    def flush(self) -> None:
        while self._session.outgoing:
            try:
                del self._session.outgoing[: self._raw.send(self._session.outgoing)]
            except BlockingIOError:
                return

    def answered(self) -> Iterator[int]:
        """Yield the slots whose markers are durable by what has arrived."""
        data = self._raw.recv(READ_BYTES)
        if not data:
            raise ConnectionError("the service has closed the connection")
        self.received_bytes += len(data)
        for answer in self._session.receive(data):
            if isinstance(answer, Refusal):
                raise answer.error
            assert isinstance(answer, Ack)
            yield self._slots.pop(answer.id)
        self.flush()


class HudiServer:
    """Hudi's timeline server, by the requests of its own client; one marker in flight per connection."""

    style = "poll"

    def __init__(self, target: Target, series: int) -> None:
        self._raw = _connected(target)
        self._raw.setblocking(False)
        self._talk = HudiTalk(target["host"], target["folder"])
        self._paths = paths(target["instant"], series)
        self.received_bytes = 0

    def fileno(self) -> int:
        return self._raw.fileno()

    def ask(self, slot: int) -> None:
        assert slot == 0, "one marker in flight"
        question = self._talk.question(next(self._paths))
        sent = self._raw.send(question)
        assert sent == len(question), "a request fits the buffer of a socket that holds no other"

    def flush(self) -> None:
        pass

    def answered(self) -> list[int]:
        data = self._raw.recv(READ_BYTES)
        if not data:
            raise ConnectionError("Hudi's timeline server has closed the connection")
        self.received_bytes += len(data)
        return [0] if self._talk.hear(data) else []


class OurClient:
    """The client of tasks: a connection of its own, which blocking threads share."""

    style = "thread"

    def __init__(self, target: Target, series: int) -> None:
        self._client = JobClient(_address(target), target["instant"], wait_s=WAIT_S)
        self._names, self._paths = target.get("names", 1), paths(target["instant"], series)
        self.ask()

    def ask(self) -> None:
        self._client.create([next(self._paths) for _ in range(self._names)])


Mark = Callable[[list[str]], Awaitable[object]]


class OurTask:
    """Callers without a service: tasks of one event loop put ``direct`` markers, or share an engine (``inside``)."""

    style = "task"

    def __init__(self, shared: tuple[Mark, SlowMemory | None], target: Target, series: int) -> None:
        self._mark, self._memory = shared
        self._paths = paths(target["instant"], series)

    @staticmethod
    @asynccontextmanager
    async def shared(target: Target) -> AsyncIterator[tuple[Mark, SlowMemory | None]]:
        """Yield what creates markers. A task of a job also reads the log's next entry and the seal after a direct
        marker, which is left out: the put is measured.
        """
        from tallymark.bench.stores import options_of

        memory = SlowMemory(constant(target["put_s"])) if "put_s" in target else None
        backend = memory or open_backend(target["table"], options=options_of(target))
        instant = target["instant"]
        if target["mark"] == "direct":
            yield lambda names: create_direct(backend, instant, names, always_open), memory
            return
        async with open_marker_engine(backend) as engine:
            directory = engine.directory(instant)
            yield lambda names: directory.create(*names), memory

    async def ask(self) -> None:
        await self._mark([next(self._paths)])

    def statistics(self) -> dict[str, float]:
        return {} if self._memory is None else {"puts": self._memory.puts, "puts_s": self._memory.puts_s}


def name_of(target: type) -> str:
    """Return what the load generator finds the class by."""
    return f"{target.__module__}:{target.__qualname__}"


def _connected(target: Target) -> socket.socket:
    connection = socket.create_connection((target["host"], target["port"]), timeout=CONNECT_TIMEOUT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _address(target: Target) -> ServiceAddress:
    return ServiceAddress(target["host"], target["port"], bytes.fromhex(target["job_key"]), target.get("job", ""))


Fields = dict[str, Any]
