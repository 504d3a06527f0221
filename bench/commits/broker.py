"""Part ``broker``: ``tallymark serve`` decides commits of writers in other processes, whose tasks have ended before."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import count
from operator import add
from secrets import token_hex

import anyio
import psutil

from tallymark.backends import Backend, StorageOptions, open_backend
from tallymark.backends.errors import TallymarkError
from tallymark.bench.commits.measure import Ground, by_verb, rate, requests, verbs
from tallymark.bench.commits.sides import FLOOR_BYTES, ROWS, append, batches
from tallymark.bench.load import Load, Seen, Target, run_load
from tallymark.bench.markers.targets import name_of
from tallymark.bench.results import Table, column, seconds
from tallymark.bench.serve_process import is_installed, serve_process
from tallymark.bench.stores import options_of
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.prepare import read_properties
from tallymark.engine.rpc.commit_broker import CommitBroker
from tallymark.engine.rpc.messages import Commit
from tallymark.engine.settings import CommitSettings, LeaseSettings, SharedServiceSettings
from tallymark.engine.table import open_table
from tallymark.engine.timeline.entry import DataFile, LogEntry, encode_entry
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.instant import instant_time
from tallymark.engine.timeline.log import new_nonce

FIRST = datetime(2020, 1, 1, tzinfo=UTC)
"""Instant of the first writer's first commit: earlier than that of any real one."""

WARM_UP_S = 1.0
"""With its first commit the service reads the log, and each process opens its connection."""

OFFERING = 4
"""Writers at a given rate, in times of the most that send one commit after the other."""

SERIES_MS = 10_000_000
"""Instants that each writer has for itself."""


class LostCommits(TallymarkError):
    """The log has other commits than were answered."""


@dataclass(slots=True)
class Shared:
    """What the writers of one process have in common."""

    broker: CommitBroker
    history: History
    counts: dict[str, float] = field(default_factory=lambda: {"commits": 0, "refused": 0})


class BrokerCaller:
    style = "task"

    def __init__(self, shared: Shared, _target: Target, series: int) -> None:
        self._shared = shared
        self._instants = (FIRST + timedelta(milliseconds=number) for number in count(series * SERIES_MS))

    @staticmethod
    @asynccontextmanager
    async def shared(target: Target) -> AsyncIterator[Shared]:
        backend = open_backend(target["table"], options=options_of(target))
        broker = CommitBroker(SharedServiceSettings(url=target["service"]), backend.url)
        assert await broker.is_there(), f"{target['service']} decides no commits"
        yield Shared(broker, await _history(backend))

    async def ask(self) -> None:
        entry = _entry(instant_time(next(self._instants)), self._shared.history)
        history = self._shared.history
        request = Commit(0, history.head, history.hash_at(history.head), encode_entry(entry))
        while await self._shared.broker.commit(request) is None:
            self._shared.counts["refused"] += 1
        self._shared.counts["commits"] += 1

    def statistics(self) -> dict[str, float]:
        return self._shared.counts


def _entry(instant: str, history: History) -> LogEntry:
    """Return what a job commits whose one task has written one file."""
    nonce = new_nonce()
    name = f"{nonce[:8]}-{nonce[8:12]}-{nonce[12:16]}-{nonce[16:20]}-{nonce[20:]}-0_0-0-0_{instant}.parquet"
    return LogEntry(
        kind="commit",
        instant=instant,
        nonce=nonce,
        base=history.head,
        operation="append",
        added=(DataFile("", name, ROWS, FLOOR_BYTES),),
        table=history.table,
    )


async def _history(backend: Backend) -> History:
    properties = await read_properties(backend)
    assert properties is not None, f"{backend.url} holds a table"
    log = TableHandle(backend, CommitSettings(), LeaseSettings()).log
    log.identify(properties.id, properties.writer_features)
    return await log.refresh()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow:
    title: str = column("")
    writers: int = column("writers")
    offered: float | None = column("offered/s", "{:,.0f}".format)
    """None: as many as are answered."""
    commits_per_s: float = column("commits/s", "{:,.0f}".format)
    p50_s: float = column("median", seconds)
    p99_s: float = column("99 %", seconds)
    max_s: float = column("longest", seconds)
    commits: int = column("commits")
    per_entry: float = column("commits/entry", "{:,.1f}".format)
    service_cpu_s: float = column("service CPU/commit", seconds)
    caller_cpu_s: float = column("callers' CPU/commit", seconds)
    by_verb: Mapping[str, float] = column("requests/commit", verbs)

    @classmethod
    def of(cls, load: Load, runs: list[Seen]) -> "BrokerRow":
        found = reduce(add, runs)
        latency, extra = found.latency, found.extra
        return cls(
            title="Tallymark, tallymark serve",
            writers=load.connections,
            offered=load.rate,
            commits_per_s=rate(found),
            p50_s=latency.p50_s,
            p99_s=latency.p99_s,
            max_s=latency.max_s,
            commits=found.answered,
            per_entry=found.answered / extra["entries"],
            service_cpu_s=extra["service_cpu_s"] / found.answered,
            caller_cpu_s=found.caller_cpu_s / found.answered,
            by_verb={verb: number / found.answered for verb, number in by_verb(found).items()},
        )


def tables(ground: Ground) -> Iterator[Table]:
    rows: list[BrokerRow] = []
    absent = {} if is_installed() else {"tallymark serve": "pip install 'tallymark[serve]'"}
    for load in () if absent else _loads(ground):
        runs = []
        for number in range(ground.effort.rounds):
            ground.progress(f"commits: {load} with a broker, {ground.place.where}, round {number + 1}")
            runs.append(_measured(ground, load))
        rows.append(BrokerRow.of(load, runs))
    yield Table(title=f"a broker alone, {ground.place.where}", rows=rows, absent=absent)


def _loads(ground: Ground) -> Iterator[Load]:
    """Yield the loads: as fast as commits are answered, and at a given rate, which shows how long each takes."""
    for writers in ground.effort.broker_writers:
        yield replace(ground.load(writers), warm_up_s=WARM_UP_S)
    many = OFFERING * max(ground.effort.broker_writers)
    yield replace(ground.load(many), warm_up_s=WARM_UP_S, rate=ground.effort.broker_rate)


def _measured(ground: Ground, load: Load) -> Seen:
    """Return what the writers see of a new table. Raises LostCommits, ChildFailed, ServeFailed."""
    place, folder = ground.place, ground.scratch / token_hex(6)
    url = f"{place.url}-{folder.name}"
    anyio.run(_create, url, place.options, backend="trio")
    with serve_process(url, place.options, folder) as served:
        process = psutil.Process(served.pid)
        target = {**place.fields(), "table": url, "service": served.url, "open": name_of(BrokerCaller)}
        before = process.cpu_times()
        requests(place)
        found = run_load(target, load, ground.scratch)
        counted = requests(place)
        after = process.cpu_times()
    history = anyio.run(_history, open_backend(url, options=place.options), backend="trio")
    if history.decided_count != found.extra["commits"] + 1:
        raise LostCommits(
            f"{url}: {found.extra['commits']:,.0f} commits, and the log has {history.decided_count - 1:,}"
        )
    cpu_s = after.user + after.system - before.user - before.system
    extra = {**found.extra, **counted, "service_cpu_s": cpu_s, "entries": history.head - 1, "seconds": load.seconds}
    return replace(found, extra=extra)


async def _create(url: str, options: StorageOptions) -> None:
    assert await append(open_table(url, options=options), next(batches(0)))
