"""A real marker service under load is killed (SIGKILL) again and again: what it has acked is on storage.

Two hundred times on a local disk. On S3 a few times, and two hundred with ``TALLYMARK_TESTS_FULL=1``.
"""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Literal

import anyio
import pytest

from tallymark.backends import open_backend
from tallymark.engine.markers.loading import load_markers
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.rpc.handshake import ServiceAddress
from tests.invariants import markers_in
from tests.support.services.s3_server import S3Server
from tests.support.storage import objects
from tests.system.forked import forking
from tests.system.marker_service import LoadingClient, Store, s3_credentials, serve

LIVES = 50
SEEDS = (1, 2, 3, 4)
IS_FULL = bool(os.environ.get("TALLYMARK_TESTS_FULL"))
S3_LIVES, S3_SEEDS = (LIVES, SEEDS) if IS_FULL else (10, SEEDS[:1])
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


@dataclass(frozen=True, slots=True)
class Storage:
    """A store, and a look at the markers of an instant around the library."""

    store: Store
    look: Callable[[str], dict[str, bytes]]
    """The objects below a folder, by their paths from the root."""


@pytest.mark.parametrize("seed", SEEDS)
def test_no_marker_that_a_killed_service_has_acked_is_missing_on_a_local_disk(tmp_path: Path, seed: int) -> None:
    def look(folder: str) -> dict[str, bytes]:
        return {f"{folder}/{name}": data for name, data in objects(tmp_path / folder).items()}

    kill_again_and_again(Storage(Store(str(tmp_path)), look), seed, LIVES)


@pytest.mark.parametrize("seed", S3_SEEDS)
def test_no_marker_that_a_killed_service_has_acked_is_missing_on_s3(s3: S3Server, bucket: str, seed: int) -> None:
    def look(folder: str) -> dict[str, bytes]:
        found = s3.objects(bucket, f"table/{folder}/")
        return {key.removeprefix("table/"): data for key, data in found.items()}

    provided = replace(s3.options, credentials=f"{s3_credentials.__module__}:{s3_credentials.__name__}")
    kill_again_and_again(Storage(Store(f"s3://{bucket}/table", provided), look), seed, S3_LIVES)


def kill_again_and_again(storage: Storage, seed: int, lives: int) -> None:
    random = Random(seed)
    instants: list[Instant] = []
    for life in range(lives):
        if not instants or random.random() < FRESH_INSTANT:
            instants.append(Instant(f"202611210000{life:05}"))
        live_and_die(storage.store, instants[-1], random, seed=f"{seed}-{life}")
        assert_all_acked_are_stored(storage, instants[-1], f"seed {seed}, life {life}")
    for instant in instants:
        assert_all_acked_are_loaded(storage, instant, f"seed {seed}")
    acked = sum(len(instant.acked) for instant in instants)
    print(f"seed {seed}: {lives} lives, {len(instants)} instants, {acked} acked markers")
    assert sum(instant.fruitful_lives for instant in instants) > lives / 2, f"seed {seed}: most died before an ack"


def live_and_die(store: Store, instant: Instant, random: Random, *, seed: str) -> None:
    """One life of a service, from its start to a random moment while clients ask it for markers."""
    loop: Literal["trio", "asyncio"] = random.choice(("trio", "asyncio"))
    is_early, again = random.random() < EARLY, sorted(instant.unacked)[:50]
    with forking() as start:
        service = start(serve, store, instant.name, loop)
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


def assert_all_acked_are_stored(storage: Storage, instant: Instant, case: str) -> None:
    """In the bare objects, as a reader of the Hudi format takes them."""
    stored = storage.look(marker_folder(instant.name))
    found = {name.removesuffix(".marker.CREATE") for owner, name in markers_in(stored) if owner == instant.name}
    lost = sorted(instant.acked - found)
    assert not lost, f"acked, and not stored: {lost[:5]} ({case} of the service, instant {instant.name})"


def assert_all_acked_are_loaded(storage: Storage, instant: Instant, case: str) -> None:
    """As the next server of the instant, or whoever rolls it back, reads them."""
    folder = marker_folder(instant.name)
    backend = open_backend(storage.store.url, options=storage.store.options)
    loaded = anyio.run(lambda: load_markers(backend, folder, concurrency=8))
    lost = sorted(instant.acked - {name.path for name in loaded.names})
    assert not lost, f"acked, and not loaded: {lost[:5]} ({case}, instant {instant.name})"
    claims = {path for path in storage.look(folder) if path.removeprefix(f"{folder}/").startswith("SERVER")}
    assert instant.fruitful_lives <= len(claims) <= instant.lives, f"{case}, instant {instant.name}: {sorted(claims)}"
