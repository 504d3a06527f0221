"""Tallymark's marker engine behind a job's service, as a driver has it."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from tallymark.backends import open_backend
from tallymark.backends.errors import TallymarkError
from tallymark.bench.defects.side import Unanswered
from tallymark.bench.views.child import child
from tallymark.engine.markers.loading import load_markers
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.rpc.client import JobClient
from tallymark.engine.rpc.handshake import ServiceAddress, job_key

_SERVER = "tallymark.bench.defects.our_server"
_HOST = "127.0.0.1"
_LOADED_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class OurSide:
    scratch: Path
    wait_s: float
    """How long a client waits for an ack, all its attempts together."""
    slow: Mapping[str, object] = field(default_factory=dict)
    """Which instant's folder is, and how slow."""
    title = "Tallymark"

    @contextmanager
    def server(self, table: Path) -> Iterator["OurServer"]:
        table.mkdir(parents=True, exist_ok=True)
        secret = secrets.token_bytes(32)
        with child(_SERVER, self.scratch / "our-server.log") as driver:
            port = driver.ask({"table": str(table), "secret": secret.hex(), **self.slow})["port"]
            yield OurServer(driver.process.pid, port, secret, table, self.wait_s)


@dataclass(frozen=True, slots=True)
class OurServer:
    pid: int
    port: int
    secret: bytes
    table: Path
    wait_s: float

    def client(self, instant: str, *, port: int | None = None) -> "OurClient":
        address = ServiceAddress(_HOST, port or self.port, job_key(self.secret, instant))
        return OurClient(JobClient(address, instant, wait_s=self.wait_s))

    def names(self, instant: str) -> frozenset[str]:
        """Read from storage by what every server loads an instant with."""
        backend = open_backend(str(self.table))
        try:
            loaded = anyio.run(lambda: load_markers(backend, marker_folder(instant), concurrency=_LOADED_AT_ONCE))
        except TallymarkError as error:
            raise Unanswered(str(error)) from error
        return frozenset(map(str, loaded.names))


@dataclass(frozen=True, slots=True)
class OurClient:
    client: JobClient

    def create(self, path: str) -> bool:
        try:
            self.client.create([path])
        except TallymarkError as error:
            raise Unanswered(f"{type(error).__name__}: {error}") from error
        return True

    def give_up(self) -> None:
        self.client.close()

    def close(self) -> None:
        self.client.close()
