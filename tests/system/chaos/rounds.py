"""A round of chaos on one store: three new tables, the chaos, a last recovery in fair weather, and the verdict."""

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Literal

import anyio

import tallymark
from tallymark import LeaseSettings
from tests.support.place import Place
from tests.support.process import await_that
from tests.support.services.fault_plan import Chance, Kind
from tests.support.services.fault_proxy import FaultProxy, fault_proxy
from tests.support.services.gcs_facade import GcsFacade
from tests.support.services.s3_server import S3Server
from tests.support.storage import objects
from tests.system.chaos.director import Director
from tests.system.chaos.judge import Story, judge
from tests.system.chaos.lives import Journal, WriterOfJob
from tests.system.chaos.plans import COMMIT, TABLES, JobPlan
from tests.system.marker_service import s3_credentials
from tests.system.pool_worker import TaskPlan
from tests.table_invariants import LOG, Storage, decisions

Store = Literal["local", "s3", "hdfs"]

LEASE = LeaseSettings(heartbeat_interval_s=1.0, expiry_s=6.0)
LEASE_OF_SECONDS = LeaseSettings(heartbeat_interval_s=2.0, expiry_s=16.0)
"""On S3, which stamps whole seconds."""
FAULT_RATE = 0.02


@dataclass(slots=True)
class Outcome:
    """What a round, or all of them, came to."""

    counts: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def add(self, other: "Outcome") -> None:
        self.counts += other.counts
        self.broken += other.broken


@dataclass(slots=True)
class Chronicle:
    """Every entry of a table's log that was seen, also those that were archived since."""

    look: Callable[[Collection[str]], Mapping[str, bytes]]
    """The objects of the log, around the library, at least those that are not among the given names."""
    seen: dict[str, bytes] = field(default_factory=dict)
    """By their paths in the table."""

    def watch(self) -> None:
        known = {path.removeprefix(LOG) for path in self.seen}
        self.seen |= {f"{LOG}{name}": data for name, data in self.look(known).items()}


@dataclass(frozen=True, slots=True)
class Table:
    place: Place
    log: Chronicle

    def storage(self) -> Storage:
        """Its objects, and the archived entries of its log."""
        self.log.watch()
        return {**self.log.seen, **self.place.objects()}


class Ground:
    """Where rounds take place: new tables for each, on a store that is there for all of them."""

    lease = LEASE
    outage: Callable[[Random], object] | None = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def tables(self, seed: int) -> Iterator[dict[str, Table]]:
        base = self.folder / f"tables-{seed}"
        yield {
            name: Table(
                Place(url=str(base / name), objects=partial(objects, base / name)),
                Chronicle(partial(_new_files, base / name / LOG)),
            )
            for name in TABLES
        }
        shutil.rmtree(base)

    def calm(self) -> Counter[str]:
        """Let fair weather begin; returns what the network has done."""
        return Counter()


class LyingStore(Ground):
    """Behind a proxy; judged around it."""

    lease = LEASE_OF_SECONDS

    def __init__(self, folder: Path, server: S3Server | GcsFacade, rate: float = FAULT_RATE) -> None:
        """``rate`` is that of each kind of fault; there are ten."""
        super().__init__(folder)
        self._server = server
        self._rate = rate
        self._proxy: FaultProxy
        self._lie: Chance

    @contextmanager
    def tables(self, seed: int) -> Iterator[dict[str, Table]]:
        bucket = self._server.bucket()
        with fault_proxy(self._server.endpoint) as self._proxy:
            self._lie = Chance(seed, self._rate, delay_s_max=0.5, long_delay=0.2, long_delay_s=5.0)
            self._proxy.let_chance(self._lie)
            options = replace(self._server.behind(self._proxy.endpoint), request_timeout_s=3.0)
            root = f"gs://{bucket}"
            if isinstance(self._server, S3Server):
                root = f"s3://{bucket}"
                options = replace(options, credentials=f"{s3_credentials.__module__}:{s3_credentials.__name__}")
            yield {
                name: Table(
                    Place(url=f"{root}/{name}", objects=partial(self._new, bucket, name, ()), options=options),
                    Chronicle(partial(self._new, bucket, f"{name}/{LOG}".rstrip("/"))),
                )
                for name in TABLES
            }
        self._server.drop(bucket)

    def calm(self) -> Counter[str]:
        self._proxy.let_chance(None)
        await_that(lambda: not self._proxy.under_way, "what was late has landed")
        counts = Counter({"requests": self._proxy.requests.total(), "faults": self._proxy.faults.total()})
        return counts + Counter({f"fault: {kind}": count for kind, count in self._proxy.faults.items()})

    def outage(self, random: Random) -> None:
        """For some seconds every request arrives late, when its client has given up."""
        silence = Chance(random.randrange(2**32), 1.0, kinds=(Kind.DELAY,), long_delay=1.0, long_delay_s=8.0)
        self._proxy.let_chance(silence)
        threading.Event().wait(random.uniform(1.0, 8.0))
        self._proxy.let_chance(self._lie)

    def _new(self, bucket: str, folder: str, known: Collection[str]) -> dict[str, bytes]:
        server, found = self._server, {}
        archived_since = server.client.exceptions.NoSuchKey if isinstance(server, S3Server) else AssertionError
        for name in {key.removeprefix(f"{folder}/") for key in server.keys(bucket, f"{folder}/")}.difference(known):
            with suppress(archived_since):
                found[name] = server.get(bucket, f"{folder}/{name}")
        return found


class SilentHdfs(Ground):
    """Of which no server answers for some time, now and then; judged by Hadoop's own client."""

    def __init__(self, folder: Path, cluster: Any, unreadable: bytes) -> None:
        super().__init__(folder)
        self._cluster = cluster
        self._unreadable = unreadable

    @contextmanager
    def tables(self, seed: int) -> Iterator[dict[str, Table]]:
        base = f"/chaos-{seed}"
        yield {
            name: Table(
                Place(url=f"{self._cluster.url}{base}/{name}", objects=partial(self._objects, f"{base}/{name}")),
                Chronicle(partial(self._objects, f"{base}/{name}/{LOG}".rstrip("/"))),
            )
            for name in TABLES
        }

    def _objects(self, folder: str, _: Collection[str] = ()) -> dict[str, bytes]:
        found = self._cluster.objects(folder)
        return {path: data for path, data in found.items() if data != self._unreadable}

    def outage(self, random: Random) -> None:
        with self._cluster.paused():
            threading.Event().wait(random.uniform(0.1, 6.0))


@contextmanager
def ground_on(store: Store, folder: Path) -> Iterator[Ground]:
    with ExitStack() as stack:
        if store == "s3":
            from tests.support.services.s3_server import s3_server

            yield LyingStore(folder, stack.enter_context(s3_server()))
        elif store == "hdfs":
            from tests.support.services.minidfs import UNREADABLE, mini_dfs

            yield SilentHdfs(folder, stack.enter_context(mini_dfs(folder / "dfs")), UNREADABLE)
        else:
            yield Ground(folder)


def play(ground: Ground, seed: int, seconds: float) -> Outcome:
    """One round. The journals, and the objects of the tables where a promise was broken, stay in the folder."""
    folder = ground.folder / f"round-{seed}"
    folder.mkdir(parents=True)
    with ground.tables(seed) as tables:
        places = {name: table.place for name, table in tables.items()}

        def watch() -> None:
            for table in tables.values():
                table.log.watch()

        director = Director(folder, places, ground.lease, Random(seed), ground.outage, watch)
        with director.playing(seconds):
            ground.calm()
        network = ground.calm()
        threading.Event().wait(ground.lease.expiry_s + 1)  # of those that seem to be on another machine
        director.plans.all |= anyio.run(_recover, ground.lease, places, folder, backend="trio")
        story, stored = Story.of(folder), {name: table.storage() for name, table in tables.items()}
        broken = [f"seed {seed}: {problem}" for problem in judge(stored, director.plans.all, story)]
        if broken:
            for name, storage in stored.items():
                _keep(folder / name, storage)
    return Outcome(director.counts + network + _counted(story, stored), broken)


async def _recover(lease: LeaseSettings, tables: Mapping[str, Place], folder: Path) -> dict[int, JobPlan]:
    """One more write to each table, and a clean. Returns the plans of these writes."""
    journal, plans = Journal(folder / "recovery.journal"), {}
    for number, (name, place) in enumerate(tables.items(), start=1):
        task = TaskPlan(first_id=number)
        plan = plans[-number] = JobPlan(number=-number, table=name, mode="append", tasks=(task,), care="clean")
        table = tallymark.open_table(place.url, options=place.options, commit=COMMIT, lease=lease)
        await WriterOfJob(table, plan, journal, ()).run()
    return plans


def _counted(story: Story, stored: Mapping[str, Storage]) -> Counter[str]:
    kinds = Counter(entry["kind"] for storage in stored.values() for entry in decisions(storage).values())
    counts = Counter({f"log: {kind}": count for kind, count in kinds.items()})
    counts += Counter(f"told: {note['told']}" for note in story.having("told"))
    counts += Counter(f"error: {note['error'].partition(':')[0]}" for note in story.having("error"))
    counts["told: archived"] = sum(1 for _ in story.having("refused"))
    counts["told: nothing"] = sum(1 for _ in story.having("began")) - sum(1 for _ in story.having("told"))
    counts["told: rerun"] = sum(note.get("is_rerun", False) for note in story.having("told"))
    counts["leased reads"] = sum(1 for _ in story.having("read"))
    return counts


def _new_files(folder: Path, known: Collection[str]) -> dict[str, bytes]:
    found = {}
    for path in folder.glob("[0-9]*"):
        if path.name not in known:
            with suppress(FileNotFoundError):  # archived since
                found[path.name] = path.read_bytes()
    return found


def _keep(folder: Path, storage: Storage) -> None:
    for path, data in storage.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
