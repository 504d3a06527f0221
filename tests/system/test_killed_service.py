"""A real marker service under load is killed (SIGKILL) two hundred times: what it has acked is on storage."""

import threading
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal

import anyio
import pytest

from tallymark.backends.local import LocalBackend
from tallymark.engine.markers.loading import load_markers
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.service.address import ServiceAddress
from tests.invariants import markers_in
from tests.support.storage import files, objects
from tests.system.forked import forking
from tests.system.marker_service import LoadingClient, serve

LIVES = 50
SEEDS = (1, 2, 3, 4)
CLIENTS = 2
EARLY = 0.25
"""How likely a life is to end at a random moment of its start; else it ends some time after its first ack."""
EARLY_S_MAX, LATE_S_MAX = 0.05, 0.08
FRESH_INSTANT = 0.25
"""How likely a life is to serve an instant of its own; else it goes on with the last one's."""


@dataclass(slots=True)
class Instant:
    """What all lives of the service that served an instant have promised."""

    name: str
    acked: set[str] = field(default_factory=set)
    unacked: set[str] = field(default_factory=set)
    lives: int = 0
    fruitful_lives: int = 0
    """Those that have acked something."""


@pytest.mark.parametrize("seed", SEEDS)
def test_no_marker_that_a_killed_service_has_acked_is_missing(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    instants: list[Instant] = []
    for life in range(LIVES):
        if not instants or random.random() < FRESH_INSTANT:
            instants.append(Instant(f"202611210000{life:05}"))
        live_and_die(tmp_path, instants[-1], random, seed=f"{seed}-{life}")
        assert_all_acked_are_on_disk(tmp_path, instants[-1], f"seed {seed}, life {life}")
    for instant in instants:
        assert_all_acked_are_loaded(tmp_path, instant, f"seed {seed}")
    assert sum(instant.fruitful_lives for instant in instants) > LIVES / 2, f"seed {seed}: most died before an ack"


def live_and_die(root: Path, instant: Instant, random: Random, *, seed: str) -> None:
    """One life of a service, from its start to a random moment while clients ask it for markers."""
    loop: Literal["trio", "asyncio"] = random.choice(("trio", "asyncio"))
    is_early, again = random.random() < EARLY, sorted(instant.unacked)[:50]
    with forking() as start:
        service = start(serve, str(root), instant.name, loop)
        address = service.hear(ServiceAddress)
        clients = [LoadingClient(address, instant.name, again, seed=f"{seed}-{each}") for each in range(CLIENTS)]
        if not is_early:
            clients[0].await_ack()
        threading.Event().wait(random.uniform(0, EARLY_S_MAX if is_early else LATE_S_MAX))
        service.kill()
    for client in clients:
        client.end()
        instant.acked |= client.acked
        instant.unacked |= client.unacked
    instant.unacked -= instant.acked
    instant.lives += 1
    instant.fruitful_lives += any(client.acked for client in clients)


def assert_all_acked_are_on_disk(root: Path, instant: Instant, case: str) -> None:
    """In the bare files, as a reader of the Hudi format takes them."""
    found = {name.removesuffix(".marker.CREATE") for owner, name in markers_in(objects(root)) if owner == instant.name}
    lost = sorted(instant.acked - found)
    assert not lost, f"acked, and on no disk: {lost[:5]} ({case} of the service, instant {instant.name})"


def assert_all_acked_are_loaded(root: Path, instant: Instant, case: str) -> None:
    """As the next server of the instant, or whoever rolls it back, reads them."""
    folder = marker_folder(instant.name)
    loaded = anyio.run(lambda: load_markers(LocalBackend(root), folder, concurrency=8))
    lost = sorted(instant.acked - {name.path for name in loaded.names})
    assert not lost, f"acked, and not loaded: {lost[:5]} ({case}, instant {instant.name})"
    claims = {name for name in files(root / folder) if name.startswith("SERVER")}
    assert instant.fruitful_lives <= len(claims) <= instant.lives, f"{case}, instant {instant.name}: {sorted(claims)}"
