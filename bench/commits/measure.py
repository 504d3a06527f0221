"""One load of commits on one new table, and the row that the loads of a side become."""

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add, itemgetter
from pathlib import Path
from typing import Any

from tallymark.backends.errors import TallymarkError
from tallymark.bench.commits.sides import Writer
from tallymark.bench.load import Load, Seen, run_load
from tallymark.bench.loopback import seen
from tallymark.bench.markers.targets import name_of
from tallymark.bench.results import column, seconds
from tallymark.bench.stores import MarkerStore
from tallymark.engine.settings import StreamSettings

REQUESTS = "requests_"
"""Begins the name of what the stand-in counts by verb."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured."""

    writers: tuple[int, ...] = (1, 4, 16, 64)
    callers: int = 256
    """Of one table."""
    broker_writers: tuple[int, ...] = (16, 64, 128)
    """Writers of a broker, each with one commit in flight."""
    broker_rate: float = 1000.0
    """Commits per second that many more writers offer, so that none waits for itself."""
    stream_callers: tuple[int, ...] = (1, 100, 10_000)
    """Of one stream."""
    flush_intervals_s: tuple[float, ...] = (1.0, 0.1)
    max_bytes: int = StreamSettings().max_bytes
    """Of a stream."""
    day_commits: int = 10_000
    """Commits of a table that is left to itself; 86,400 are a day."""
    seconds: float = 10.0
    """Of each load."""
    rounds: int = 3
    latencies_s: tuple[float, ...] = (0.030, 0.005)
    """Per request of the S3 stand-in."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a part measures, what, and how much."""

    place: MarkerStore
    scratch: Path
    """A folder on this machine, for logs and catalogs."""
    sides: Sequence[type[Writer]]
    effort: Effort
    progress: Callable[[str], None]

    def load(self, connections: int, processes: int | None = None) -> Load:
        cores = len(os.sched_getaffinity(0))
        return Load(connections=connections, processes=processes or cores, seconds=self.effort.seconds)


class WrongRows(TallymarkError):
    """A table has other rows than were committed."""


def measure(
    ground: Ground, writer: type[Writer], load: Load, callers: type[Any] | None = None, **fields: object
) -> Seen:
    """Commit to a new table. ``writer`` makes it and reads it at the end; ``callers`` commit, or else such writers.

    ``fields`` are further ones of the target.

    ``extra`` of the result has rows that were committed and read, refused commits, requests, and seconds of the load.

    Raises:
        WrongRows: the table has other rows than were committed.
        ChildFailed: a writer has failed.
    """
    name = secrets.token_hex(6)
    table, catalog = f"{ground.place.url}-{name}", f"{ground.scratch / name}.db"
    target = {**ground.place.fields(), **fields, "table": table, "catalog": catalog, "open": name_of(callers or writer)}
    first = writer(target, 0)
    with first.opened:
        found = run_load(target, load, ground.scratch, counting=partial(requests, ground.place))
        extra = {**found.extra, **requests(ground.place), "seconds": load.seconds, "rows": first.rows()}
    extra["committed"] += first.statistics()["committed"]
    if extra["rows"] != extra["committed"]:
        raise WrongRows(f"{writer.__name__}: {table} has {extra['rows']:,} rows of {extra['committed']:,}")
    return replace(found, extra=extra)


def requests(place: MarkerStore, _began: float = 0.0) -> dict[str, int]:
    """Return the requests by verb since the last call, as ``requests_put``; none for a folder."""
    if place.options.endpoint is None:
        return {}
    return {kind: number for kind, number in seen(place.options.endpoint).items() if kind.startswith(REQUESTS)}


def by_verb(found: Seen) -> dict[str, float]:
    """Return the requests of the load by verb."""
    return {name.removeprefix(REQUESTS): number for name, number in found.extra.items() if name.startswith(REQUESTS)}


def verbs(counts: Mapping[str, float]) -> str:
    """Return the requests of one commit as text, those of most requests first: ``6.0 put, 3.0 get``."""
    ordered = sorted(counts.items(), key=itemgetter(1), reverse=True)
    return ", ".join(f"{number:,.1f} {verb}" for verb, number in ordered)


def rate(found: Seen) -> float:
    """Return the commits per second of a load, or of several."""
    return found.within / found.extra["seconds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRow:
    title: str = column("")
    writers: int = column("writers")
    commits_per_s: float = column("commits/s", "{:,.1f}".format)
    p50_s: float = column("median", seconds)
    p99_s: float = column("99 %", seconds)
    max_s: float = column("longest", seconds)
    longest_wait: float = column("over the median", "{:,.1f}".format)
    commits: int
    refused: int = column("refused")
    committed_rows: int = column("rows committed")
    rows: int = column("rows read")
    cpu_s: float = column("CPU/commit", seconds)
    requests: float | None = column("requests/commit", "{:,.1f}".format)
    by_verb: Mapping[str, float] = column("by verb", verbs)

    @classmethod
    def of(cls, title: str, writers: int, runs: Sequence[Seen]) -> "CommitRow":
        """Join the loads of one side."""
        found = reduce(add, runs)
        latency, extra = found.latency, found.extra
        requests = {verb: number / found.answered for verb, number in by_verb(found).items()}
        return cls(
            title=title,
            writers=writers,
            commits_per_s=rate(found),
            p50_s=latency.p50_s,
            p99_s=latency.p99_s,
            max_s=latency.max_s,
            longest_wait=latency.max_s / latency.p50_s,
            commits=found.answered,
            refused=int(extra["refused"]),
            committed_rows=int(extra["committed"]),
            rows=int(extra["rows"]),
            cpu_s=found.caller_cpu_s / found.answered,
            requests=sum(requests.values()) or None,
            by_verb=requests,
        )
