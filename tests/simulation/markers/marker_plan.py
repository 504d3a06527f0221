"""What happens in a run without a table, drawn from its seed: servers of markers, and their clients.

An embedder of the marker engine has instants and data files of its own. What it relies on is the engine, the service
and the client, and what storage holds in the end.
"""

import math
import random
from dataclasses import dataclass, replace
from typing import Literal

from tallymark.engine.settings import MarkerSettings
from tests.simulation.fault_profile import FIRST_SEGMENT, FaultProfile, draw_fault_profile
from tests.simulation.plan import Mishap, draw_host, draw_mishap

INSTANTS = ("20261121000000000", "20261121000001000")

SERVER_STEPS_MAX = 1500
"""Steps of a server before which a mishap may happen to it: most take fewer."""
SERVER_LANDMARKS = (("put", FIRST_SEGMENT), ("put", "/SERVER"), ("list", "/.temp/"))
CLIENT_STEPS_MAX = 120

BUSY = 0.3
"""Share of plans in which readers read while segments are merged."""
BUSY_REQUESTS, BUSY_S = 24, 4.0

FEW_NAMES, MANY_NAMES = 6, 60
"""Names that all requests are drawn from: few are often requested twice, many fill segments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPlan:
    """One request for markers."""

    at_s: float
    instant: int
    names: tuple[int, ...]
    server: int = 0
    """The server that gets the request first; where it cannot be reached, the next one does."""
    patience_s: float = math.inf
    """After that the requester waits no longer: in a server it is cancelled, wherever it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActPlan:
    """Something that a server does with its engine: ``close`` and open another, ``forget`` and serve again, ..."""

    what: Literal["seal", "forget", "close", "names", "delete"]
    at_s: float
    instant: int
    pause_s: float = 0.0
    """Between the end of an engine and the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPlan:
    host: str
    start_s: float
    waits_for_last: bool
    """It takes over when the server before it has ended, or seems to have: after ``TAKEOVER_S`` at most."""
    settings: MarkerSettings
    requests: tuple[RequestPlan, ...]
    """By tasks of the server's own process, without the service."""
    acts: tuple[ActPlan, ...]
    sends_shutdown_error: bool
    mishap: Mishap | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPlan:
    host: str
    wait_s: float
    requests: tuple[RequestPlan, ...]
    mishap: Mishap | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerVisitorPlan:
    """A process that reads an instant's markers repeatedly, or ends the instant: first the log, then its markers."""

    host: str
    what: Literal["load", "end"]
    instant: int
    at_s: tuple[float, ...]
    is_calm: bool
    """Its requests to storage succeed, whatever happens to the others."""
    mishap: Mishap | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerPlan:
    seed: int
    faults: FaultProfile
    instant_count: int
    servers: tuple[ServerPlan, ...]
    clients: tuple[ClientPlan, ...]
    visitors: tuple[MarkerVisitorPlan, ...]
    has_staging: bool = False
    body_bytes: int = 1 << 20

    @property
    def servers_read_the_log(self) -> bool:
        """An instant that only its one server ends needs no log."""
        is_ended = any(visitor.what == "end" for visitor in self.visitors)
        return is_ended or any(act.what == "delete" for server in self.servers for act in server.acts)


def draw_markers(seed: int) -> MarkerPlan:
    chance = random.Random(f"{seed}/markers")
    troubles = chance.choice((0, 1, 1, 2, 2, 3))
    kinds = set(chance.sample(("storage", "storage", "network", "killed", "stopped", "cancelled"), troubles))
    instant_count = chance.choice((1, 1, 2))
    names = chance.choice((FEW_NAMES, FEW_NAMES, MANY_NAMES))
    pool = _Pool(chance, instant_count, names)
    server_count = chance.choice((1, 1, 2, 2, 3))
    settings = _settings(chance, kinds)
    servers = tuple(_server(chance, kinds, pool, number, settings) for number in range(server_count))
    visitors = tuple(_visitor(chance, kinds, instant_count) for _ in range(chance.choice((0, 1, 1, 2))))
    if chance.random() < BUSY:
        servers = (*servers[:-1], _busy(chance, servers[-1]))
        visitors = (*visitors, _curious(chance))
    return MarkerPlan(
        seed=seed,
        instant_count=instant_count,
        servers=servers,
        clients=tuple(_client(chance, kinds, pool, server_count) for _ in range(chance.choice((0, 1, 2, 3)))),
        visitors=visitors,
        faults=draw_fault_profile(chance, kinds),
    )


def _busy(chance: random.Random, server: ServerPlan) -> ServerPlan:
    """It flushes one segment after the other, and merges them all the time, where it merges at all."""
    requests = (
        RequestPlan(at_s=BUSY_S * chance.random(), instant=0, names=(number,)) for number in range(BUSY_REQUESTS)
    )
    return replace(server, requests=(*server.requests, *requests), start_s=0.0)


def _curious(chance: random.Random) -> MarkerVisitorPlan:
    """Reads what the busy one writes, again and again."""
    moments = sorted(BUSY_S * chance.random() for _ in range(BUSY_REQUESTS // 2))
    return MarkerVisitorPlan(
        host=draw_host(chance), what="load", instant=0, at_s=tuple(moments), is_calm=chance.random() < 0.7
    )


class _Pool:
    """Source of requests."""

    def __init__(self, chance: random.Random, instant_count: int, names: int) -> None:
        self.chance = chance
        self.instant_count = instant_count
        self.names = names

    def requests(self, count: int, *, servers: int = 1, hasty: float) -> tuple[RequestPlan, ...]:
        """Draw requests in bursts: those during a flush find most faults."""
        within_s = self.chance.choice((0.02, 0.3, 3.0, 60.0))
        return tuple(self._request(within_s, servers, hasty) for _ in range(count))

    def _request(self, within_s: float, servers: int, hasty: float) -> RequestPlan:
        chance = self.chance
        return RequestPlan(
            at_s=round(within_s * chance.random(), 4),
            instant=chance.randrange(self.instant_count),
            names=tuple(chance.randrange(self.names) for _ in range(chance.choice((1, 1, 1, 2, 4)))),
            server=chance.randrange(servers),
            patience_s=chance.choice((0.0, 0.01, 0.1, 1.0)) * chance.random() if chance.random() < hasty else math.inf,
        )


def _server(chance: random.Random, kinds: set[str], pool: _Pool, number: int, settings: MarkerSettings) -> ServerPlan:
    requests = pool.requests(chance.choice((0, 1, 5, 20)), hasty=chance.choice((0.0, 0.4, 0.7)))
    return ServerPlan(
        host=draw_host(chance),
        start_s=chance.choice((0.0, 0.0, 0.01, 0.5)),
        waits_for_last=number > 0 and chance.random() < 0.5,
        settings=settings,
        requests=requests,
        acts=tuple(_act(chance, pool.instant_count) for _ in range(chance.choice((0, 0, 1, 2)))),
        sends_shutdown_error=chance.random() < 0.5,
        mishap=draw_mishap(chance, kinds, probability=0.7, steps=SERVER_STEPS_MAX, landmarks=SERVER_LANDMARKS),
    )


def _act(chance: random.Random, instant_count: int) -> ActPlan:
    return ActPlan(
        what=chance.choice(("seal", "forget", "forget", "close", "close", "close", "names", "names", "delete")),
        at_s=chance.choice((0.05, 0.5, 5.0, 60.0)) * chance.random(),
        instant=chance.randrange(instant_count),
        pause_s=chance.choice((0.0, 0.1, 2.0)),
    )


def _client(chance: random.Random, kinds: set[str], pool: _Pool, server_count: int) -> ClientPlan:
    return ClientPlan(
        host=draw_host(chance),
        wait_s=chance.choice((2.0, 20.0, 60.0)),
        requests=pool.requests(chance.choice((1, 2, 6, 12)), servers=server_count, hasty=chance.choice((0.0, 0.3))),
        mishap=draw_mishap(chance, kinds, probability=0.3, steps=CLIENT_STEPS_MAX),
    )


def _visitor(chance: random.Random, kinds: set[str], instant_count: int) -> MarkerVisitorPlan:
    is_end = chance.random() < 0.25
    return MarkerVisitorPlan(
        host=draw_host(chance),
        what="end" if is_end else "load",
        instant=chance.randrange(instant_count),
        at_s=tuple(sorted(chance.choice((0.05, 0.5, 5.0, 60.0)) * chance.random() for _ in range(1 if is_end else 4))),
        is_calm=chance.random() < 0.5,
        mishap=draw_mishap(chance, kinds, probability=0.3, steps=CLIENT_STEPS_MAX),
    )


def _settings(chance: random.Random, kinds: set[str]) -> MarkerSettings:
    """Servers of one instant are configured alike. Small limits are reached all the time."""
    is_hurried = "storage" in kinds and chance.random() < 0.6
    merges = chance.random() < 0.6
    return MarkerSettings(
        kind=chance.choice(("batched", "batched", "batched", "direct")),
        interval_s=chance.choice(("auto", "auto", 0, 0.05)),
        worker_count=chance.choice((1, 2, 3)),
        queue_limit=chance.choice((2, 5)) if chance.random() < 0.2 else 1000,
        flush_timeout_s=chance.choice((0.05, 1.0, 5.0)) if is_hurried else 30.0,
        flush_attempt_count=chance.choice((1, 1, 2)) if is_hurried else 4,
        flush_retry_pause_s=chance.choice((0.0, 0.1)),
        load_concurrency=chance.choice((1, 2, 32)),
        segment_count_max=chance.choice((1, 2, 4)) if merges else 20,
        merge_freed_min=chance.choice((1, 2)) if merges else 16,
        merge_bytes_ratio_max=chance.choice((2.0, 4.0, 100.0)) if merges else 4.0,
        merge_memory_bytes=chance.choice((0, 100, 10_000)),
        hedge_quantile=chance.choice((None, 0.5, 0.95)),
        hedge_ratio_max=chance.choice((0.1, 1.0)),
    )
