"""A whole run of the question ``views``: one size of table after the other, and on each one side after the other.

Commits are followed last, by all sides in turn, so that each side follows the same ones.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from subprocess import SubprocessError

import anyio.from_thread

from tallymark.backends.errors import TallymarkError
from tallymark.bench.folder import new_folder
from tallymark.bench.made_table import TableShape
from tallymark.bench.method import rotated
from tallymark.bench.results import Chart, Table, column, number, seconds, size
from tallymark.bench.views.ground import Effort, Ground
from tallymark.bench.views.lookup import Lookup
from tallymark.bench.views.sides import Open, Side, sides

KINDS = ("ours", "hudi", "delta", "listing")

FILES = (10_000, 100_000, 1_000_000)

QUICK_FILES = (1_000, 3_000)

QUICK = Effort(
    rate=200, connections=8, processes=2, seconds=1, warm_up_s=0.5, alone_s=0.2, followed=(1, 10), followed_times=2
)
"""Long enough to see that everything answers; too short for figures."""

SMALL = TableShape(files=200, partitions=100, commits=2)

P50_BAR_S, P99_BAR_S, READY_BAR_S, BYTES_BAR, SYNC_BAR = 0.001, 0.010, 2.0, 150, 1.5
"""Of served lookups at any size; until a million files are known from a checkpoint on a local disk; memory per file;
following a commit in the largest table over the smallest."""

METHOD = """\
Tables are metadata only: a commit log that names files, without a byte of data. Half of the lookups are for the files
of a partition, half for one file by its id (a listing lists the partition for both). Many callers send lookups at
moments of a Poisson process, and a latency counts from when its lookup was due (coordinated omission is corrected).
Clients are Python; parsing Hudi's JSON is not counted, parsing our answers is. Memory: growth of the process, after
another view of that kind had been opened and closed there; of Hudi's server, objects in its heap after a collection.
A served view includes the start of a driver. Commits are followed by all sides in turn; the best time is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    files: Sequence[int] = FILES
    kinds: Sequence[str] = KINDS
    effort: Effort = field(default_factory=Effort)
    parent: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRow:
    title: str = column("")
    first_s: float | None = column("one partition", seconds)
    ready_s: float | None = column("all", seconds)
    requests: str | None = column("requests")
    grown_bytes: int | None = column("memory", size)
    bytes_per_file: float | None = column("per file", number)
    alone_p50_s: float | None = column("alone: median", seconds)
    alone_p99_s: float | None = column("99 %", seconds)
    many_p50_s: float | None = column("many: median", seconds)
    many_p99_s: float | None = column("99 %", seconds)
    many_per_s: float | None = column("per second", number)


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowRow:
    title: str = column("")
    table_files: int = column("files of the table")
    files: int = column("files of a commit")
    best_s: float = column("followed", seconds)
    growth: float | None = column("over the smallest table")
    samples_s: tuple[float, ...]


def tables(asked: Asked, progress: Callable[[str], None]) -> Iterator[Table]:
    """Measure below a folder. Nothing remains there."""
    followed: list[FollowRow] = []
    with new_folder(asked.parent) as folder, anyio.from_thread.start_blocking_portal("trio") as loop:

        def ground(where: Path, shape: TableShape) -> Ground:
            async def make() -> Ground:
                found = Ground(where, shape, asked.effort)
                await found.make()
                return found

            return loop.call(make)

        small = ground(folder / "small", SMALL)
        for files in asked.files:
            with new_folder(folder) as large, ExitStack() as stack:
                progress(f"views: making {files:,} files")
                made = ground(large, TableShape(files=files))
                absent: dict[str, str] = {}
                opened: dict[str, Open] = {}
                rows = []
                for side in (side for kind in asked.kinds for side in sides(kind, made, small)):
                    progress(f"views: {made.shape.label}: {side.title}")
                    try:
                        opened[side.title], row = _measured(side, made, stack)
                        rows.append(row)
                    except (TallymarkError, OSError, SubprocessError) as error:
                        absent[side.title] = str(error).strip().partition("\n")[0]
                chart = Chart(values=("alone_p50_s", "alone_p99_s", "many_p50_s", "many_p99_s"), is_log=True)
                title = (
                    f"{made.shape.label}: until answers, and lookups; bars: {seconds(READY_BAR_S)}, {BYTES_BAR} bytes "
                    f"per file, {seconds(P50_BAR_S)} and {seconds(P99_BAR_S)} at 99 % for many"
                )
                yield Table(title=title, rows=rows, charts=(chart,), absent=absent)
                progress(f"views: {made.shape.label}: following commits")
                followed += _followed(made, opened, followed, partial(loop.call, made.append))
    yield Table(title=f"following commits; bar: {SYNC_BAR:g} times the smallest table", rows=followed)


def _measured(side: Side, ground: Ground, stack: ExitStack) -> tuple[Open, ViewRow]:
    """Open the side for as long as the stack, and measure it. Many callers come first: a JVM has to warm up."""
    with ExitStack() as own:
        found = own.enter_context(side.opened())
        many, alone, opening = found.many(), found.alone(), found.opening
        stack.push(own.pop_all())
    grown = opening.grown_bytes
    return found, ViewRow(
        title=side.title,
        first_s=opening.first_s,
        ready_s=opening.ready_s,
        requests=opening.requests,
        grown_bytes=grown,
        bytes_per_file=None if grown is None else grown / ground.shape.files,
        alone_p50_s=None if alone is None else alone.p50_s,
        alone_p99_s=None if alone is None else alone.p99_s,
        many_p50_s=None if many is None else many.latency.p50_s,
        many_p99_s=None if many is None else many.latency.p99_s,
        many_per_s=None if many is None else many.rate,
    )


def _followed(
    ground: Ground, opened: dict[str, Open], before: Sequence[FollowRow], append: Callable[[int], Lookup]
) -> Iterator[FollowRow]:
    titles = list(opened)
    for files in ground.effort.followed:
        taken: dict[str, list[float]] = {}
        for turn in range(ground.effort.followed_times + 1):
            lookup = append(files)
            for title in rotated(titles, turn) if titles else ():
                took_s = opened[title].follow(lookup)
                if took_s is not None and turn:  # the first of each size is a warm-up
                    taken.setdefault(title, []).append(took_s)
        for title, samples in taken.items():
            first = next((row.best_s for row in before if (row.title, row.files) == (title, files)), None)
            yield FollowRow(
                title=title,
                table_files=ground.shape.files,
                files=files,
                best_s=min(samples),
                growth=None if first is None else min(samples) / first,
                samples_s=tuple(samples),
            )
