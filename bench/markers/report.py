"""An answer for people: the machine, the method, and what was measured."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from tallymark.bench.markers import alone_report
from tallymark.bench.markers.answer import (
    DELETED_BAR_S,
    OBJECTS_BAR,
    WRITTEN_BAR,
    JobRow,
    LoadRows,
    MarkersAnswer,
    PacedRow,
)
from tallymark.bench.markers.names import MARKER_BYTES
from tallymark.bench.markers.page import table
from tallymark.bench.page import print_tables
from tallymark.bench.report import seconds

METHOD = """\
Callers ask for one marker each, over a connection each, and for the next one when they have its ack; names are as those
of tasks, {marker} bytes a line. One program in {processes} processes asks all sides that are asked over connections,
with one poll and no threads; it takes an answer apart as far as to know that the marker is durable. Few: {few} callers,
{rate:g} markers a second in all, at moments of their own (a Poisson process): a latency counts from when its marker was
due, whether or not the ack before it was there (coordinated omission is corrected). Many: {many} callers, each as soon
as it has its ack. All sides are open at once and take turns, {rounds} times {seconds:g} s, after {warm_up:g} s of it.
Ours syncs each file and its folder before the ack; Hudi's server writes its files anew, and syncs nothing.
Direct markers are put by the callers themselves: an empty file each, without the two reads with which a task makes sure
that its job is still open. Bytes: ours as its engine counts what it sends, merges included; Hudi's as the system counts
what its process writes, less its answers. On disk: as the system counts for either process. CPU: of the process that
makes markers durable. Load of the machine before {before:.1f}, after {after:.1f}: well above 0, others share it."""


def show(page: Console, answer: MarkersAnswer) -> None:
    page.print(f"{answer.machine}\n")
    effort = answer.effort
    page.print(
        METHOD.format(
            marker=MARKER_BYTES,
            few=effort.few,
            rate=effort.rate,
            many=effort.callers,
            processes=effort.loads[0].processes,
            rounds=effort.rounds,
            seconds=effort.seconds,
            warm_up=effort.warm_up_s,
            before=answer.machine.load,
            after=answer.load_after,
        )
    )
    print_tables(page, tables(answer), answer.absent)


def tables(answer: MarkersAnswer) -> Iterator[Table]:
    for load in answer.beside.loads:
        yield acks(load, answer.where)
    if answer.beside.jobs:
        yield jobs(
            f"whole jobs by {answer.effort.callers} callers, {answer.where}; bar: {WRITTEN_BAR:g} bytes for one",
            answer.beside.jobs,
        )
    if answer.beside.paced:
        yield jobs(f"whole jobs, {answer.beside.paced_load}, {answer.where}, all at the same time", answer.beside.paced)
    if held := list(answer.beside.held()):
        page = table("Tallymark, batched, against Hudi's server", ("", "ours", "bar"))
        for each in held:
            page.add_row(each.title, each.what, f"{each.times:.2f}", f"{each.bar:g}")
        yield page
    if answer.trials:
        page = table("Hudi's server, by its settings", (f"mean ack of {answer.effort.few} callers",))
        for title, mean_s in answer.trials.items():
            page.add_row(title, seconds(mean_s))
        yield page
    if answer.published:
        bars = f"{OBJECTS_BAR} objects with markers left, {seconds(DELETED_BAR_S)} to delete"
        yield jobs(f"whole jobs by {answer.effort.callers} callers, {answer.far}; bars: {bars}", answer.published)
    yield from alone_report.tables(answer.alone)


def acks(load: LoadRows, where: str) -> Table:
    page = table(
        f"{load.load}, {where}",
        ("mean", "median", "99 %", "99.9 %", "markers/s", "puts", "bytes for one", "on disk", "CPU", "callers' CPU"),
    )
    for row in load.rows:
        found = row.acks
        page.add_row(
            row.title,
            *(seconds(each) for each in (found.mean_s, found.latency.p50_s, found.latency.p99_s, found.latency.p999_s)),
            f"{found.rate:,.0f}",
            _count(found.puts),
            _times(found.amplification),
            _megabytes(found.disk_bytes),
            _micros(found.cpu_us),
            _micros(found.caller_cpu_us),
        )
    return page


def jobs(title: str, rows: Sequence[JobRow | PacedRow]) -> Table:
    page = table(
        title,
        (
            "markers",
            "created",
            "markers/s",
            "mean ack",
            "99 %",
            "puts",
            "bytes",
            "for one",
            "CPU",
            "objects",
            "deleted",
        ),
    )
    for row in rows:
        job, found = row.job, row.job.acks
        page.add_row(
            row.title,
            f"{found.count:,}",
            seconds(job.created_s),
            f"{found.rate:,.0f}",
            seconds(found.mean_s),
            seconds(found.latency.p99_s),
            _count(found.puts),
            _megabytes(found.sent_bytes),
            _times(found.amplification),
            _micros(found.cpu_us),
            _objects(job.left.objects, job.left.segments),
            seconds(job.deleted_s),
        )
    return page


def _objects(objects: int, segments: int) -> str:
    return f"{objects:,}" if objects == segments else f"{segments:,} + {objects - segments}"


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def _micros(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f} µs"


def _megabytes(value: int | None) -> str:
    return "" if value is None else f"{value / 1e6:,.1f} MB"
