"""A marker service as a process of its own, and clients that ask it for as much as they can until it is gone."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from random import Random
from typing import Literal

import anyio

from tallymark.backends import StorageOptions, open_backend
from tallymark.engine.markers import open_marker_engine
from tallymark.engine.rpc.client import JobClient
from tallymark.engine.rpc.dispatcher import MarkerHandler
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.rpc.server import JobServer
from tallymark.engine.settings import ServiceSettings

SECRET = b"known to every life of the service".ljust(40, b".")
PATIENCE_S = 60.0

INFLIGHT = 8
"""Requests that a client does not wait for before it makes another."""


@dataclass(frozen=True, slots=True)
class Store:
    """Where the service keeps its markers."""

    url: str
    options: StorageOptions = field(default_factory=StorageOptions)


def serve(line: Connection, store: Store, instant: str, loop: Literal["trio", "asyncio"]) -> None:
    """The program: serves the markers of one instant until it is killed; says its address."""
    anyio.run(partial(_serve, line, store, instant), backend=loop)


async def _serve(line: Connection, store: Store, instant: str) -> None:
    backend = open_backend(store.url, options=store.options)
    async with open_marker_engine(backend) as engine, anyio.create_task_group() as tasks:
        server = JobServer(SECRET, ServiceSettings(), MarkerHandler(engine))
        await tasks.start(lambda *, task_status: server.run(task_status=task_status))
        line.send(server.address(instant))


def s3_credentials() -> dict[str, object]:
    """A provider: processes that are forked have the environment of the one that forks, and not the test's."""
    return {"access_key_id": "tests", "secret_access_key": "not-a-secret-of-anybody", "expires_at": None}


class LoadingClient(threading.Thread):
    """Asks for new markers, and for those of earlier lives that nobody acked, with several requests in flight."""

    def __init__(self, address: ServiceAddress, instant: str, again: Sequence[str], *, seed: str) -> None:
        super().__init__(name=f"load {seed}", daemon=True)
        self.acked: set[str] = set()
        self.unacked: set[str] = set()
        self._client = JobClient(address, instant, wait_s=PATIENCE_S)
        self._again = list(again)
        self._random = Random(seed)
        self._seed = seed
        self._is_over = threading.Event()
        self._has_ack = threading.Event()
        self.start()

    def await_ack(self) -> None:
        assert self._has_ack.wait(PATIENCE_S), self.name

    def end(self) -> None:
        """The service is gone: who still waits is answered by nobody."""
        self._is_over.set()
        self._client.close()
        self.join(PATIENCE_S)
        assert not self.is_alive(), self.name

    def run(self) -> None:
        pending: dict[Future[None], list[str]] = {}
        for names in self._requests():
            if self._is_over.is_set():
                break
            pending[self._client.request(names)] = names
            while len(pending) >= INFLIGHT:
                wait(pending, timeout=PATIENCE_S, return_when=FIRST_COMPLETED)
                self._settle(pending)
        self._client.close()
        wait(pending, timeout=PATIENCE_S)
        self._settle(pending)

    def _requests(self) -> Iterator[list[str]]:
        if self._again:
            yield self._again
        for number in count():
            names = self._random.randint(1, 20)
            yield [f"month={self._random.randint(1, 12)}/{self._seed}-{number}-{n}.parquet" for n in range(names)]

    def _settle(self, pending: dict[Future[None], list[str]]) -> None:
        for future in [future for future in pending if future.done()]:
            names = pending.pop(future)
            if future.exception() is None:
                self.acked.update(names)
                self._has_ack.set()
            else:
                self.unacked.update(names)
