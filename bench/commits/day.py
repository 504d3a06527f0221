"""Part ``day``: the objects that a table has beside its data files, over the commits of a day with one per second.

No second passes: the table's clock and that of its store are moved on after each commit. Measured once, beside the
parts on a local disk.
"""

import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import anyio

from tallymark.backends.memory import MemoryBackend
from tallymark.bench.commits.measure import Ground, WrongRows
from tallymark.bench.commits.sides import SIDES, append, batches, is_installed
from tallymark.bench.results import Chart, Table, column, number, seconds, size
from tallymark.engine.table import open_table

SECOND = timedelta(seconds=1)

LOOK_COMMITS = 61
"""Commits from one look to the next: a prime, so that no look falls on the same step of each checkpoint."""

DELTA_COMMITS = 1_000
"""Most commits of deltalake: the more its log has, the longer each takes."""

POINTS = 20
"""Rows of each side in the table of the curve."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a table has beside its data files after this many commits."""

    commits: int
    objects: int
    bytes: int
    cpu_s: float
    """Of this process, for all commits so far."""

    @classmethod
    def at(cls, commits: int, sizes: Iterable[int], cpu_s: float) -> "Look":
        found = list(sizes)
        return cls(commits, len(found), sum(found), cpu_s)


NOTHING = Look(0, 0, 0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRow:
    title: str = column("")
    commits: int = column("commits made")
    objects: int = column("objects at the end")
    first_half_most: int = column("most in the first half")
    second_half_most: int = column("most in the second half")
    bytes: int = column("bytes at the end", size)
    per_file: float = column("bytes per data file", number)
    first_half_cpu_s: float | None = column("CPU/commit, first half", seconds)
    second_half_cpu_s: float = column("second half", seconds)

    @classmethod
    def of(cls, title: str, looks: Sequence[Look]) -> "DayRow":
        last = looks[-1]
        first = [NOTHING, *(look for look in looks if look.commits * 2 <= last.commits)]
        middle = first[-1]
        return cls(
            title=title,
            commits=last.commits,
            objects=last.objects,
            first_half_most=max(look.objects for look in first),
            second_half_most=max(look.objects for look in looks if look.commits > middle.commits),
            bytes=last.bytes,
            per_file=last.bytes / last.commits,
            first_half_cpu_s=middle.cpu_s / middle.commits if middle.commits else None,
            second_half_cpu_s=(last.cpu_s - middle.cpu_s) / (last.commits - middle.commits),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveRow:
    title: str = column("")
    commits: int = column("commits")
    objects: int = column("objects")
    most: int = column("most since the row before")
    bytes: int = column("bytes", size)


def curve(title: str, looks: Sequence[Look]) -> Iterator[CurveRow]:
    """Yield about ``POINTS`` rows, of which each states the most objects of all looks since the one before."""
    places = sorted({round((part + 1) * len(looks) / POINTS) for part in range(POINTS)} - {0})
    for start, end in pairwise([0, *places]):
        last, most = looks[end - 1], max(look.objects for look in looks[start:end])
        yield CurveRow(title=title, commits=last.commits, objects=last.objects, most=most, bytes=last.bytes)


class MovedClock:
    """A clock that shows what it was set to."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment


def tables(ground: Ground) -> Iterator[Table]:
    if ground.place.folder is None:
        return
    found: dict[str, Sequence[Look]] = {}
    absent: dict[str, str] = {}
    ours, delta = SIDES["ours"], SIDES["delta"]
    if ours in ground.sides:
        found[ours.title] = anyio.run(_ours, ground.effort.day_commits, ground.progress, backend="trio")
    if delta in ground.sides and is_installed(delta):
        found[delta.title] = list(_delta(ground))
    elif delta in ground.sides:
        absent[delta.title] = "pip install 'tallymark[bench]'"
    title = "objects beside data files, one commit per second on a clock that is moved"
    yield Table(title=title, rows=[DayRow.of(side, looks) for side, looks in found.items()], absent=absent)
    rows = [row for side, looks in found.items() for row in curve(side, looks)]
    chart = Chart(values=("most",), x="commits", axis="commits", is_log=True)
    yield Table(title="the same after each number of commits", rows=rows, charts=(chart,))


async def _ours(commits: int, progress: Callable[[str], None]) -> list[Look]:
    return [look async for look in _looks(commits, progress)]


async def _looks(commits: int, progress: Callable[[str], None]) -> AsyncIterator[Look]:
    """Append to a table in memory, with all settings at their defaults. Raises WrongRows."""
    clock = MovedClock()
    backend = MemoryBackend(now=lambda: clock.moment.timestamp())
    table, rows = open_table(backend.url, backend=backend, clock=clock), batches(0)
    cpu_s = 0.0
    for done in range(1, commits + 1):
        began_s = time.process_time()
        assert await append(table, next(rows), backend), "memory accepts each commit"
        cpu_s += time.process_time() - began_s
        clock.moment += SECOND
        if done % LOOK_COMMITS == 0 or done == commits:
            progress(f"commits: {done:,} of {commits:,} of a day")
            yield Look.at(done, [entry.size async for entry in backend.list("") if not _is_data(entry.path)], cpu_s)
    if (files := len((await table.snapshot()).files)) != commits:
        raise WrongRows(f"{files:,} files of {commits:,} commits")


def _is_data(path: str) -> bool:
    return path.endswith(".parquet") and not path.startswith(".hoodie/")


def _delta(ground: Ground) -> Iterator[Look]:
    """Append with deltalake to a folder, on the clock of this machine: a day is less than its log is retained for."""
    target = {**ground.place.fields(), "table": f"{ground.place.url}-day"}
    commits, cpu_s = min(ground.effort.day_commits, DELTA_COMMITS), 0.0
    writer = SIDES["delta"](target, 0)
    for done in range(1, commits + 1):
        began_s = time.process_time()
        if done > 1:  # opening the writer has made the first, and imports the library, which is not counted
            writer.ask()
        cpu_s += time.process_time() - began_s
        if done % LOOK_COMMITS == 0 or done == commits:
            ground.progress(f"commits: {done:,} of {commits:,} of deltalake")
            yield Look.at(done, [entry.stat().st_size for entry in os.scandir(f"{target['table']}/_delta_log")], cpu_s)
