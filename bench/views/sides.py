"""Sides of the question ``views``: each opens what answers, and reports what opening it took."""

import json
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, get_args
from urllib.request import urlopen

from tallymark.backends.s3 import S3Stores
from tallymark.bench.child import Child, child
from tallymark.bench.load import Latency, Seen, Target, run_load
from tallymark.bench.loopback import server
from tallymark.bench.loopback.objects import BUCKET
from tallymark.bench.markers.targets import name_of
from tallymark.bench.peers.delta_log import has_delta, release
from tallymark.bench.peers.hudi_view import HudiView, names
from tallymark.bench.peers.objects import Obstore
from tallymark.bench.peers.timeline_server import HUDI, ViewStorage, timeline_server
from tallymark.bench.views.ground import Ground, bookkeeping
from tallymark.bench.views.held import Spec, options_of
from tallymark.bench.views.lookup import Lookup
from tallymark.bench.views.targets import DiskListing, HudiServer, LookupTarget, OurService, S3Listing

STORES = ("memory", "spillable", "key-value")

MEMORY_BYTES = 32 << 20
"""Of blocks that a store with a disk may keep in memory: less than the default, so that a million files do not fit."""

HEAP_MB = 4096
"""Enough for all of Hudi's views of 100,000 files several times over."""

LATENCY_S = 0.03
"""Per request of a far store."""

KEPT_BYTES_MAX = 1 << 30
"""Of the S3 stand-in: a view has to read what it starts from, however large."""

COPIES = 32

TIMEOUT_S = 30.0

now = time.perf_counter


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """From nothing to answers. None: the side has no such figure."""

    first_s: float | None = None
    """Until one partition is answered for."""
    ready_s: float | None = None
    """Until each is."""
    grown_bytes: int | None = None
    requests: str | None = None
    """That a store received during it, by kind."""


class Open:
    """An open side. By itself it only measures its opening."""

    opening: Opening

    def __init__(self, opening: Opening) -> None:
        self.opening = opening

    def many(self) -> Seen | None:
        return None

    def alone(self) -> Latency | None:
        return None

    def follow(self, _lookup: Lookup) -> float | None:
        """Return the seconds until the side knows a new commit; None: it keeps nothing."""
        return None


class Side(Protocol):
    """Opening raises OSError, SubprocessError or TallymarkError where the side cannot take part."""

    @property
    def title(self) -> str: ...

    def opened(self) -> AbstractContextManager[Open]: ...


class OpenTarget(Open):
    """A side that the load generator sends lookups to."""

    def __init__(self, opening: Opening, ground: Ground, target: Target, *, by_many: bool = True) -> None:
        super().__init__(opening)
        self.ground = ground
        self.target = {**target, "lookups": str(ground.wanted)}
        self._by_many = by_many

    def many(self) -> Seen | None:
        return run_load(self.target, self.ground.effort.many(), self.ground.folder) if self._by_many else None

    def alone(self) -> Latency | None:
        return run_load(self.target, self.ground.effort.alone(), self.ground.folder).latency


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSide:
    """A view that a process holds itself: ours, or a Delta log."""

    title: str
    spec: Spec
    warm: Spec
    """Of a small table."""
    small: Ground
    ground: Ground
    is_ready_only: bool = False

    @contextmanager
    def opened(self) -> Iterator[Open]:
        with child("tallymark.bench.views.holder", self.ground.folder / "holder.log") as holder:
            holder.ask({"warm": {"view": dict(self.warm), "lookup": self.small.lookups[0].fields()}})
            lookup = self.ground.lookups[0].fields()
            opening = Opening(**holder.ask({"open": {"view": dict(self.spec), "lookup": lookup}}))
            yield Open(opening) if self.is_ready_only else OpenHeld(opening, self.ground, holder)


class OpenHeld(Open):
    def __init__(self, opening: Opening, ground: Ground, holder: Child) -> None:
        super().__init__(opening)
        self._ground = ground
        self._holder = holder

    def alone(self) -> Latency | None:
        wanted = [lookup.fields() for lookup in self._ground.lookups]
        found = self._holder.ask({"ask": {"lookups": wanted, "seconds": self._ground.effort.alone_s}})
        return Latency.of(found["latency_s"])

    def follow(self, lookup: Lookup) -> float | None:
        synced_s: float = self._holder.ask({"follow": {"lookup": lookup.fields()}})["synced_s"]
        return synced_s


@dataclass(frozen=True, slots=True, kw_only=True)
class FarSide:
    """Our view of the same table on a far store: its bookkeeping is copied, data files are not."""

    title: str
    near: HeldSide
    table: Path

    @contextmanager
    def opened(self) -> Iterator[Open]:
        with server(LATENCY_S, kept_bytes_max=KEPT_BYTES_MAX) as endpoint:
            self._copy(endpoint)
            spec = {**self.near.spec, "table": f"s3://{BUCKET}/table", "endpoint": endpoint}
            _requests(endpoint)
            with replace(self.near, spec=spec, is_ready_only=True).opened() as far:
                yield Open(replace(far.opening, requests=_requests(endpoint), grown_bytes=None))

    def _copy(self, endpoint: str) -> None:
        options = options_of({"endpoint": endpoint})
        store = Obstore(S3Stores(BUCKET, options).make(options.request_timeout_s), "table")
        with ThreadPoolExecutor(COPIES) as threads:
            paths = list(bookkeeping(self.table))
            keys = [path.relative_to(self.table).as_posix() for path in paths]
            list(threads.map(lambda key, path: store.put(key, path.read_bytes()), keys, paths))


def _requests(endpoint: str) -> str:
    """Return the requests by kind since the last call."""
    with urlopen(f"{endpoint}/{BUCKET}?seen", timeout=TIMEOUT_S) as answer:  # noqa: S310 our own server
        found: Mapping[str, int] = json.load(answer)
    return ", ".join(f"{count} {name.removeprefix('requests_').upper()}" for name, count in found.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedSide:
    """The view that a job's service answers from; the driver is a process of its own."""

    title: str
    spec: Spec
    ground: Ground

    @contextmanager
    def opened(self) -> Iterator[Open]:
        with child("tallymark.bench.views.server", self.ground.folder / "driver.log") as driver:
            started = now()
            target = {"open": name_of(OurService), **driver.ask(self.spec)}
            _look_up(OurService(target, 0), self.ground.lookups[0])
            yield OpenServed(Opening(first_s=now() - started), self.ground, target)


class OpenServed(OpenTarget):
    def follow(self, _lookup: Lookup) -> float | None:
        """Look up at a position that the service has not reached: it reads the log on."""
        position, log_hash = self.ground.head
        found = OurService({**self.target, "position": position, "log_hash": log_hash}, 0)
        started = now()
        _look_up(found, _lookup)
        return now() - started


@dataclass(frozen=True, slots=True)
class HudiSide:
    ground: Ground
    view: ViewStorage

    @property
    def title(self) -> str:
        return f"Hudi {HUDI}, {self.view}"

    @contextmanager
    def opened(self) -> Iterator[Open]:
        ground = self.ground
        with timeline_server(ground.folder / f"hudi-{self.view}", view=self.view, heap_mb=HEAP_MB) as running:
            before, started = running.heap_bytes(), now()
            view = HudiView(running.port, ground.table)
            view.files(ground.lookups[0].partition)
            first_s = now() - started
            view.load_all()
            ready_s = now() - started
            opening = Opening(first_s=first_s, ready_s=ready_s, grown_bytes=running.heap_bytes() - before)
            target = {"open": name_of(HudiServer), "port": running.port, "table": str(ground.table)}
            yield OpenHudi(opening, ground, target, view)
            view.close()


class OpenHudi(OpenTarget):
    def __init__(self, opening: Opening, ground: Ground, target: Target, view: HudiView) -> None:
        super().__init__(opening, ground, target)
        self._view = view

    def follow(self, lookup: Lookup) -> float | None:
        started = now()
        self._view.sync()
        synced_s = now() - started
        found = names(self._view.files(lookup.partition))
        assert len(found) >= lookup.files, f"{lookup} was answered with {len(found)} files"
        return synced_s


@dataclass(frozen=True, slots=True)
class DiskSide:
    ground: Ground
    title = "listing a local disk"

    @contextmanager
    def opened(self) -> Iterator[Open]:
        if not self.ground.has_files:
            raise FileNotFoundError("this many empty files are not made")
        target = {"open": name_of(DiskListing), "table": str(self.ground.table)}
        yield OpenTarget(_listed(DiskListing(target, 0), self.ground), self.ground, target)


@dataclass(frozen=True, slots=True)
class S3Side:
    """Many callers are left out: at 30 ms, 32 connections list a thousand times per second at most."""

    ground: Ground
    title = f"listing S3, {LATENCY_S * 1000:.0f} ms a request"

    @contextmanager
    def opened(self) -> Iterator[Open]:
        held = self.ground.folder / "keys"
        held.write_text("".join(f"table/{path}\n" for path in self.ground.names.read_text().splitlines()))
        with server(LATENCY_S, held=held) as endpoint:
            where = {"endpoint": endpoint, "prefix": "table", "bucket": BUCKET}
            target: dict[str, Any] = {"open": name_of(S3Listing), **where}
            yield OpenTarget(_listed(S3Listing(target, 0), self.ground), self.ground, target, by_many=False)


def _listed(target: LookupTarget, ground: Ground) -> Opening:
    started = now()
    target.check(ground.lookups[0])
    first_s = now() - started
    target.check(Lookup("", None, ground.shape.files))
    return Opening(first_s=first_s, ready_s=now() - started - first_s)


def _look_up(target: LookupTarget, lookup: Lookup) -> None:
    try:
        target.check(lookup)
    finally:
        target.close()


def sides(kind: str, ground: Ground, small: Ground) -> Iterator[Side]:
    """Yield the sides of one kind; processes are warmed up with the ``small`` table."""
    match kind:
        case "ours":
            for store in STORES:
                yield from _ours(store, ground, small)
        case "hudi":
            for view in get_args(ViewStorage):
                yield HudiSide(ground, view)
        case "delta":
            spec = {"held": "delta", "table": str(ground.delta)}
            warm = {"held": "delta", "table": str(small.delta)}
            title = f"deltalake {release()}, in process" if has_delta() else "deltalake"
            yield HeldSide(title=title, spec=spec, warm=warm, small=small, ground=ground)
        case "listing":
            yield DiskSide(ground)
            yield S3Side(ground)


def _ours(store: str, ground: Ground, small: Ground) -> Iterator[Side]:
    settings = {"store": store, "memory_bytes": MEMORY_BYTES, "folder": str(ground.folder / "stores")}
    spec = {"held": "ours", "table": str(ground.table), "views": settings}
    title = f"Tallymark, {store}, in process"
    near = HeldSide(title=title, spec=spec, warm={**spec, "table": str(small.table)}, small=small, ground=ground)
    yield near
    yield ServedSide(title=f"Tallymark, {store}, served", spec=spec, ground=ground)
    if store == STORES[0]:
        bare = {**spec, "table": str(ground.bare)}
        by_log = replace(near, title="Tallymark, no checkpoint", spec=bare, is_ready_only=True)
        where = f"S3, {LATENCY_S * 1000:.0f} ms a request"
        yield by_log
        yield FarSide(title=f"Tallymark, {where}", near=near, table=ground.table)
        yield FarSide(title=f"Tallymark, {where}, no checkpoint", near=by_log, table=ground.bare)
