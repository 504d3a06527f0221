"""The parts of the question ``markers`` and their tables."""

import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import SubprocessError
from typing import TypeVar

from tallymark.backends import StorageOptions
from tallymark.backends.errors import TallymarkError
from tallymark.bench import serve_process
from tallymark.bench.load import Load, Seen, run_load
from tallymark.bench.markers import (
    commits,
    crowd,
    disturbed,
    hudi,
    hudi_jobs,
    model,
    outside,
    pace_cost,
    pages,
    recovery,
    throughput,
)
from tallymark.bench.markers.parts import PARTS
from tallymark.bench.markers.sides import Counts, HudiSide, ServedSide, Side, TaskSide, Tuning
from tallymark.bench.markers.taking import Opened, Taken, first_line, less, new_instant, open_sides, take
from tallymark.bench.method import rotated
from tallymark.bench.results import Chart, Table, column, micros, number, seconds, size
from tallymark.bench.stores import MarkerStore, at, far, near

Progress = Callable[[str], None]


ACK_BAR, RATE_BAR, BYTES_BAR = 5.0, 1.0, 50.0
"""Beside Hudi's server: times lower acks of few callers, times as many markers per second, times fewer bytes."""

WRITTEN_BAR, OBJECTS_BAR, DELETED_BAR_S = 4.0, 20, 1.0
"""Bytes written per byte of markers; segments that a job leaves; seconds to delete them at 30 ms per request."""

READINGS = 40
"""Of what each side has written, in the part ``slow``."""

METHOD = """\
Each caller has a connection and one marker in flight; names are as those of tasks, 110 bytes per line. One program in
two processes sends the requests to all sides that have connections. Few callers send at moments of a Poisson process,
and a latency counts from when its marker was due (coordinated omission is corrected); many callers send the next
request as soon as they have an ack. All sides are open at once and take turns. Tallymark syncs each file and its folder
before the ack; Hudi's server writes its files again and syncs nothing. Bytes: ours as the engine counts what it sends,
merges included; Hudi's as the system counts what its process writes, less its answers; in the part hudi those of files
in the folder of markers. CPU: of the process that makes markers durable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured."""

    rounds: int = 3
    seconds: float = 5.0
    """Of each load of each side in each round."""
    warm_up_s: float = 1.0
    first_s: float = 3.0
    """Once for each side before all rounds, as fast as it answers: a JVM has to warm up."""
    filling: tuple[int, ...] = (1_000, 20_000, 165_000)
    """Markers of the whole jobs beside each other."""
    pace_minutes: float = 10.0
    published: tuple[int, ...] = (1_000, 165_000)
    intervals_ms: tuple[int, ...] = (1, 2, 5, 10, 20)
    """Of Hudi's server, tried with its own number of threads."""
    threads: tuple[int, ...] = (5, 100)
    """Of Hudi's server, tried at the best interval."""
    recovered: tuple[int, ...] = (1_000, 165_000, 1_000_000)
    recoveries: int = 3
    throughput_s: float = 10.0
    flushes: int = 300
    cost_runs: int = 5
    cost_s: float = 2.5
    outside_rounds: int = outside.ROUNDS
    outside_s: float = outside.LENGTH_S
    disturbed_rounds: int = disturbed.ROUNDS
    strangers_part: float = 1.0
    """Of the clients that disturb a job."""
    open_jobs: crowd.Crowd = field(default_factory=crowd.Crowd)
    shown: pages.Pages = field(default_factory=pages.Pages)
    committed: tuple[int, ...] = (100, 1_000, 10_000)
    """Files of the writes whose puts are counted."""
    hudi_markers: int = 20_000
    """Of each block on Hudi's server and on ours."""
    hudi_rounds: int = 3
    hudi_insert: hudi_jobs.Insert = field(default_factory=hudi_jobs.Insert)
    """Of the whole jobs of Hudi."""
    callers: int = 240
    few: int = 32
    rate: float = 200.0
    """Markers per second of the few callers: one in 160 ms each, so that an ack of 50 ms delays no later one."""

    def few_callers(self, seconds: float) -> Load:
        return Load(connections=self.few, rate=self.rate, seconds=seconds, warm_up_s=self.warm_up_s)

    def up_to(self, markers: int) -> "Effort":
        """Return the same with jobs of at most this many markers, and one of exactly as many."""
        return replace(
            self,
            filling=(*(each for each in self.filling if each < markers), markers),
            published=(*(each for each in self.published if each < markers), markers),
            hudi_markers=min(self.hudi_markers, markers),
        )


QUICK = Effort(
    rounds=1,
    seconds=1.0,
    warm_up_s=0.5,
    first_s=0.5,
    filling=(300, 3_000),
    pace_minutes=0.1,
    published=(200, 1_000),
    intervals_ms=(5,),
    threads=(),
    recovered=(1_000,),
    recoveries=1,
    throughput_s=1.0,
    flushes=10,
    cost_runs=1,
    cost_s=0.5,
    outside_rounds=1,
    outside_s=1.0,
    disturbed_rounds=1,
    strangers_part=0.02,
    open_jobs=crowd.Crowd(tables=4, jobs=20, markers=10),
    shown=pages.QUICK,
    committed=(100,),
    hudi_markers=600,
    hudi_rounds=1,
    hudi_insert=hudi_jobs.Insert(partitions=5, tasks=4),
    callers=64,
)
"""Long enough to see that everything answers; too short for figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    parts: Sequence[str] = PARTS
    effort: Effort = field(default_factory=Effort)
    store: str | None = None
    """A URL; None: the temporary directory, and the S3 stand-in."""
    options: StorageOptions = field(default_factory=StorageOptions)
    latency_s: float = 0.030
    puts_per_s: float = 3500.0

    def near(self) -> AbstractContextManager[MarkerStore]:
        return at(self.store, self.options) if self.store else near(Path(tempfile.gettempdir()))

    def far(self) -> AbstractContextManager[MarkerStore]:
        return at(self.store, self.options) if self.store else far(self.latency_s, self.puts_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class AckRow:
    side: str
    title: str = column("")
    mean_s: float = column("mean ack", seconds)
    p50_s: float = column("median", seconds)
    p99_s: float = column("99 %", seconds)
    p999_s: float = column("99.9 %", seconds)
    rate: float = column("markers/s", number)
    puts: float | None = column("puts", number)
    sent_bytes: float | None
    amplification: float | None = column("per byte")
    cpu_us: float | None = column("CPU/marker", micros)
    caller_cpu_us: float = column("callers' CPU", micros)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    side: str
    title: str = column("")
    markers: int = column("markers")
    created_s: float = column("created", seconds)
    rate: float = column("markers/s", number)
    puts: float | None = column("puts", number)
    sent_bytes: float | None = column("bytes", size)
    amplification: float | None = column("per byte")
    cpu_us: float | None = column("CPU/marker", micros)
    segments: int = column("segments")
    others: int = column("others")
    deleted_s: float = column("deleted", seconds)


AnyRow = TypeVar("AnyRow", AckRow, JobRow)


@dataclass(frozen=True, slots=True, kw_only=True)
class BarRow:
    """Ours against Hudi's server in one run; above 1 is in our favour."""

    title: str = column("")
    what: str = column("what")
    times: float = column("times")
    bar: float = column("bar")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    title: str = column("")
    mean_s: float = column("mean ack", seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRow:
    title: str = column("")
    markers: int = column("markers")
    written_bytes: float = column("bytes written", size)


def tables(asked: Asked, progress: Progress) -> Iterator[Table]:
    """Measure the parts. Nothing remains where it was measured."""
    with tempfile.TemporaryDirectory(prefix="tallymark-bench-") as name:
        for part, place, measured in (
            ("beside", asked.near, beside),
            ("hudi", asked.near, measure_hudi),
            ("slow", asked.near, slow),
            ("published", asked.far, published),
        ):
            if part in asked.parts:
                with place() as store:
                    yield from measured(store, asked.effort, Path(name), progress)
    yield from _alone(asked.parts, asked.effort, progress)


def _alone(parts: Sequence[str], effort: Effort, progress: Progress) -> Iterator[Table]:
    """Measure the parts that need no store of the user's."""
    if "recovery" in parts:
        progress("markers: recovery")
        yield recovery.table(effort.recovered, rounds=effort.recoveries)
    if "throughput" in parts:
        progress("markers: what a service acks")
        yield throughput.table(effort.throughput_s)
    if "model" in parts:
        progress("markers: acks on a virtual clock")
        yield model.table(effort.flushes)
    if "pace" in parts:
        progress("markers: acks over puts")
        yield pace_cost.table(effort.cost_s, effort.cost_runs)
    yield from _served(parts, effort, progress)
    if "commits" in parts:
        progress("markers: puts of a write")
        yield commits.table(effort.committed)


def _served(parts: Sequence[str], effort: Effort, progress: Progress) -> Iterator[Table]:
    """Measure the parts about ``tallymark serve``."""
    measured: dict[str, Callable[[], Table]] = {
        "outside": lambda: outside.table(effort.outside_rounds, effort.outside_s),
        "disturbed": lambda: disturbed.table(
            effort.disturbed_rounds, effort.outside_s, disturbed.disturbances(effort.strangers_part)
        ),
        "crowd": lambda: crowd.table(effort.open_jobs),
        "pages": lambda: pages.large_table(effort.shown),
        "fleet": lambda: pages.fleet_table(effort.shown),
    }
    for part in parts:
        if part in measured and not serve_process.is_installed():
            progress(f"markers: {part} needs tallymark[serve], and is left out")
        elif part in measured:
            progress(f"markers: tallymark serve, {part}")
            yield measured[part]()


def measure_hudi(store: MarkerStore, effort: Effort, logs: Path, progress: Progress) -> Iterator[Table]:
    """Measure markers in Hudi's protocol, and whole jobs of Hudi."""
    loads = hudi.loads_of(effort.hudi_markers, few=effort.few, many=effort.callers, rate=effort.rate)
    yield from hudi.request_tables(store, loads, effort.hudi_rounds, logs, progress)
    yield from hudi_jobs.job_tables(store, effort.hudi_insert, effort.hudi_rounds, logs, progress)


def beside(store: MarkerStore, effort: Effort, logs: Path, progress: Progress) -> Iterator[Table]:
    """Measure all sides on one folder in turn."""
    absent: dict[str, str] = {}
    sides: list[Side] = [
        ServedSide(store=store.fields(), logs=logs),
        TaskSide(mark="inside", store=store),
        TaskSide(mark="direct", store=store),
    ]
    trials: dict[str, float] = {}
    if store.folder is None:
        absent["Hudi's timeline server"] = "it creates markers in folders of this machine only"
    else:
        sides += hudi_sides(store.folder, effort, logs, trials, absent, progress)
    with ExitStack() as stack:
        opened = list(_open(sides, effort, logs, stack, absent, progress))
        few = in_turn(opened, effort.few_callers(effort.seconds), effort, logs, progress)
        many_load = Load(connections=effort.callers, seconds=effort.seconds, warm_up_s=effort.warm_up_s)
        many = in_turn(opened, many_load, effort, logs, progress)
        jobs = [
            whole_job(each, Load(connections=effort.callers, count=markers), logs, progress)
            for markers in effort.filling
            for each in opened
            if each.side.has_jobs
        ]
    few_title = f"{effort.few} callers, {effort.rate:g} markers per second, {store.where}"
    latency = Chart(values=("p50_s", "mean_s", "p99_s"), axis="seconds", is_log=True)
    yield Table(title=few_title, rows=few, charts=(latency,), absent=absent)
    yield Table(title=f"{many_load}, {store.where}", rows=many, charts=(Chart(values=("rate",), axis="markers/s"),))
    jobs_title = f"whole jobs by {effort.callers} callers, {store.where}; bar: {WRITTEN_BAR:g} bytes per byte"
    written = [row for row in jobs if row.sent_bytes is not None]
    yield Table(title=jobs_title, rows=jobs)
    yield Table(title="Tallymark, batched, beside Hudi's server", rows=[*bars(few, many, written)])
    tried = [TrialRow(title=title, mean_s=mean_s) for title, mean_s in trials.items()]
    yield Table(title=f"Hudi's server by its settings, {effort.few} callers", rows=tried)


def bars(few: Sequence[AckRow], many: Sequence[AckRow], jobs: Sequence[JobRow]) -> Iterator[BarRow]:
    for ours, other in _beside_hudi(few):
        yield BarRow(title=other.title, what="mean ack, times lower", times=other.mean_s / ours.mean_s, bar=ACK_BAR)
    for ours, other in _beside_hudi(few):
        yield BarRow(title=other.title, what="99 % of acks, times lower", times=other.p99_s / ours.p99_s, bar=ACK_BAR)
    for ours, other in _beside_hudi(many):
        yield BarRow(title=other.title, what="times as many markers/s", times=ours.rate / other.rate, bar=RATE_BAR)
    for mine, its in _beside_hudi(largest(jobs)):
        times = (its.sent_bytes or 0) / (mine.sent_bytes or 1)
        yield BarRow(title=its.title, what="bytes of the largest job, times fewer", times=times, bar=BYTES_BAR)


def _beside_hudi(rows: Sequence[AnyRow]) -> Iterator[tuple[AnyRow, AnyRow]]:
    ours = next((row for row in rows if row.side == "ours"), None)
    for row in rows:
        if ours is not None and row.side.startswith("hudi"):
            yield ours, row


def largest(jobs: Sequence[JobRow]) -> list[JobRow]:
    most = max((row.markers for row in jobs), default=0)
    return [row for row in jobs if row.markers >= 0.9 * most]


def hudi_sides(
    folder: Path, effort: Effort, logs: Path, trials: dict[str, float], absent: dict[str, str], progress: Progress
) -> list[Side]:
    """Return Hudi's server with its defaults, and with the best of the settings that are tried."""

    def side(tuning: Tuning) -> HudiSide:
        name = f"hudi-{tuning.interval_ms}-{tuning.threads}"
        return HudiSide(name=name, folder=folder / name, logs=logs, tuning=tuning)

    means: dict[Tuning, float] = {}

    def attempt(tunings: Iterable[Tuning]) -> Tuning:
        for tuning in tunings:
            progress(f"markers: trying {side(tuning).title}")
            with side(tuning).opened() as opened:
                take(opened, Load(connections=effort.few, seconds=effort.first_s), logs)
                means[tuning] = take(opened, effort.few_callers(effort.seconds / 2), logs).seen.mean_s
                trials[side(tuning).title] = means[tuning]
        return min(means, key=means.__getitem__)

    default = Tuning()
    try:
        best = attempt([default, *(replace(default, interval_ms=each) for each in effort.intervals_ms)])
        best = attempt(replace(best, threads=each) for each in effort.threads)
    except (TallymarkError, OSError, SubprocessError) as error:
        absent["Hudi's timeline server"] = first_line(error)
        return []
    return [side(tuning) for tuning in dict.fromkeys((default, best))]


def _open(
    sides: Sequence[Side], effort: Effort, logs: Path, stack: ExitStack, absent: dict[str, str], progress: Progress
) -> Iterator[Opened]:
    progress(f"markers: starting {', '.join(side.title for side in sides)}")
    return open_sides(sides, Load(connections=effort.few, seconds=effort.first_s), logs, stack, absent)


def in_turn(opened: Sequence[Opened], load: Load, effort: Effort, logs: Path, progress: Progress) -> list[AckRow]:
    taken: dict[str, Taken] = {}
    for round_number in range(effort.rounds):
        for each in rotated(opened, round_number) if opened else ():
            progress(f"markers: {load}: round {round_number + 1} of {effort.rounds}: {each.side.title}")
            found, name = take(each.open, load, logs), each.side.name
            taken[name] = taken[name] + found if name in taken else found
    return [ack_row(each.side, taken[each.side.name]) for each in opened]


def whole_job(each: Opened, load: Load, logs: Path, progress: Progress) -> JobRow:
    """Create all markers of a job, wait until merges have ended, and delete the markers."""
    progress(f"markers: {load}: {each.side.title}")
    name, side = new_instant(), each.open
    target, before = side.target(name), side.counts()
    seen = run_load(target, load, logs)
    objects, segments = side.settle(name)
    counts = side.stored(less(side.counts(), before), seen)
    return job_row(each.side, Taken(seen, counts), objects, segments, side.delete(name))


def ack_row(side: Side, taken: Taken) -> AckRow:
    seen, counts = taken.seen, taken.counts
    return AckRow(
        side=side.name,
        title=side.title,
        mean_s=seen.mean_s,
        p50_s=seen.latency.p50_s,
        p99_s=seen.latency.p99_s,
        p999_s=seen.latency.p999_s,
        rate=seen.rate,
        puts=counts["puts"],
        sent_bytes=counts["sent_bytes"],
        amplification=taken.amplification,
        cpu_us=taken.cpu_us,
        caller_cpu_us=seen.caller_cpu_s / seen.answered * 1e6,
    )


def job_row(side: Side, taken: Taken, objects: int, segments: int, deleted_s: float) -> JobRow:
    seen, counts = taken.seen, taken.counts
    return JobRow(
        side=side.name,
        title=side.title,
        markers=seen.answered,
        created_s=seen.answered / seen.rate,
        rate=seen.rate,
        puts=counts["puts"],
        sent_bytes=counts["sent_bytes"],
        amplification=taken.amplification,
        cpu_us=taken.cpu_us,
        segments=segments,
        others=objects - segments,
        deleted_s=deleted_s,
    )


def published(store: MarkerStore, effort: Effort, logs: Path, progress: Progress) -> Iterator[Table]:
    """Measure whole jobs on a far store, batched and direct."""
    rows = []
    for side in (ServedSide(store=store.fields(), logs=logs), TaskSide(mark="direct", store=store)):
        with side.opened() as opened:
            for markers in effort.published:
                load = Load(connections=effort.callers, count=markers)
                rows.append(whole_job(Opened(side, opened), load, logs, progress))
    title = (
        f"whole jobs by {effort.callers} callers, {store.where}; bars: {OBJECTS_BAR} objects with markers left, "
        f"{seconds(DELETED_BAR_S)} to delete"
    )
    yield Table(title=title, rows=rows, charts=(Chart(values=("created_s", "deleted_s"), axis="seconds", is_log=True),))


def slow(store: MarkerStore, effort: Effort, logs: Path, progress: Progress) -> Iterator[Table]:
    """Measure a job at the pace of jobs on all sides at the same time: a server that writes its files again writes as
    often as time passes, and as fast as it answers it would seem to write little.
    """
    length_s = effort.pace_minutes * 60
    load = Load(connections=effort.few, processes=1, rate=max(effort.filling) / length_s, seconds=length_s)
    sides: list[Side] = [ServedSide(store=store.fields(), logs=logs)]
    if store.folder is not None:
        sides.append(HudiSide(folder=store.folder / "hudi", logs=logs))
    absent: dict[str, str] = {}
    name, rows = new_instant(), list[JobRow]()
    points: list[PointRow] = []
    with ExitStack() as stack, ThreadPoolExecutor() as threads:
        opened = list(_open(sides, effort, logs, stack, absent, progress))
        running: list[tuple[Opened, Counts, Future[Seen], list[Counts]]] = []
        for each in opened:
            own = logs / f"slow-{each.side.name}"
            own.mkdir()
            target, before = each.open.target(name), each.open.counts()
            running.append((each, before, threads.submit(run_load, target, load, own), []))
        started = time.monotonic()
        for reading in range(1, READINGS + 1):
            progress(f"markers: {load}: {reading} of {READINGS}")
            due = started + load.seconds * reading / READINGS
            threading.Event().wait(max(0.0, due - time.monotonic()))
            for each, before, _, readings in running:
                readings.append(less(each.open.counts(), before))
        for each, before, future, readings in running:
            seen = future.result()
            objects, segments = each.open.settle(name)
            taken = Taken(seen, each.open.stored(less(each.open.counts(), before), seen))
            points += _points(each, seen, readings)
            rows.append(job_row(each.side, taken, objects, segments, each.open.delete(name)))
    title = f"whole jobs, {load}, {store.where}, all at the same time"
    yield Table(title=title, rows=rows, absent=absent)
    compared = [*bars((), (), rows)]
    yield Table(title="at the pace of a job, Tallymark, batched, beside Hudi's server", rows=compared)
    chart = Chart(values=("written_bytes",), x="markers", axis="markers of the job")
    yield Table(title="bytes written by then", rows=points, charts=(chart,))


def _points(each: Opened, seen: Seen, readings: Sequence[Counts]) -> Iterator[PointRow]:
    for place, counts in enumerate(readings, 1):
        share = place / len(readings)
        so_far = replace(seen, answered=int(seen.answered * share), received_bytes=int(seen.received_bytes * share))
        written = each.open.stored(counts, so_far)["sent_bytes"]
        yield PointRow(title=each.side.title, markers=so_far.answered, written_bytes=written or 0)
