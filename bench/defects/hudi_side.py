"""Hudi's own timeline server, standing alone, with marker requests on."""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tallymark.bench.defects.side import Unanswered
from tallymark.bench.peers.hudi_instant import MARKER_REQUESTS, HudiInstant
from tallymark.bench.peers.hudi_view import Refused
from tallymark.bench.peers.timeline_server import TimelineServer, timeline_server
from tallymark.bench.peers.writers.hudi import RELEASE

_starts = count()


@dataclass(frozen=True, slots=True)
class HudiSide:
    scratch: Path
    wait_s: float
    """How long a client waits for an answer; Hudi's own wait 300 s."""
    arguments: tuple[str, ...] = ()
    """Beside its defaults."""
    told: str = field(default="", kw_only=True)
    """What people call these."""

    @property
    def title(self) -> str:
        return f"Hudi {RELEASE}{self.told and ', '}{self.told}"

    @contextmanager
    def server(self, table: Path) -> Iterator["HudiServer"]:
        scratch = self.scratch / f"hudi-{next(_starts)}"
        with timeline_server(scratch, arguments=(MARKER_REQUESTS, *self.arguments)) as server:
            yield HudiServer(server, table, self.wait_s)


@dataclass(frozen=True, slots=True)
class HudiServer:
    server: TimelineServer
    table: Path
    wait_s: float

    @property
    def pid(self) -> int:
        return self.server.pid

    @property
    def port(self) -> int:
        return self.server.port

    def instant(self, instant: str, *, port: int | None = None) -> HudiInstant:
        return HudiInstant(port or self.port, self.table, instant, timeout_s=self.wait_s)

    def client(self, instant: str, *, port: int | None = None) -> "HudiClient":
        return HudiClient(self.instant(instant, port=port))

    def names(self, instant: str) -> frozenset[str]:
        asked = self.instant(instant)
        try:
            return asked.names()
        except (Refused, OSError, http.client.HTTPException) as error:
            raise Unanswered(f"{type(error).__name__}: {error}") from error
        finally:
            asked.close()


@dataclass(frozen=True, slots=True)
class HudiClient:
    asked: HudiInstant

    def create(self, path: str) -> bool:
        try:
            return self.asked.create(path)
        except (Refused, OSError, http.client.HTTPException) as error:
            raise Unanswered(f"{type(error).__name__}: {error}") from error

    def give_up(self) -> None:
        """Its connections end with the server."""

    def close(self) -> None:
        self.asked.close()
