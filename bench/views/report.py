"""An answer for people: the machine, the method, and for each size of table what was measured."""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from tallymark.bench.page import print_tables, table
from tallymark.bench.report import seconds
from tallymark.bench.views.answer import (
    BYTES_BAR,
    P50_BAR_S,
    P99_BAR_S,
    READY_BAR_S,
    SYNC_BAR,
    ViewAnswer,
    ViewSection,
)
from tallymark.bench.views.latency import Latency
from tallymark.bench.views.sides import MEMORY_BYTES

METHOD = """\
Tables are their metadata only: files that a commit log names, in {commits} commits, without a byte of data. Half of the
questions are for all files of a partition, half for one file by its id (who keeps no view lists the partition for
both). One caller asks one thing after the other, for {alone:g} s.
Many: {schedule},
each connection at moments of its own (a Poisson process). A latency counts from the moment at which the question was
due, whether or not the answer before it was there: coordinated omission is corrected. Clients are Python; what takes
Hudi's JSON apart is not counted, what takes our answers apart is. Memory: by how much the holder's process has grown,
after another view of that kind had been opened in it and closed; of Hudi's server, objects in its heap after a
collection. Spillable and key-value may have {memory} MiB of blocks in memory. Served: from the start of a driver, whose
Python has yet to import everything, and whose job to begin. Commits are followed by all sides in turn: until the side
would answer with it / until it has answered for one of its partitions. Load of the machine before {before:.1f}, after
{after:.1f}: well above 0, others share it."""


def show(page: Console, answer: ViewAnswer) -> None:
    page.print(f"{answer.machine}\n")
    effort = answer.effort
    page.print(
        METHOD.format(
            commits=answer.sections[0].shape.commits,
            alone=effort.alone_s,
            memory=MEMORY_BYTES >> 20,
            schedule=effort.schedule,
            before=answer.machine.load,
            after=answer.load_after,
        )
    )
    print_tables(page, tables(answer), answer.absent)


def tables(answer: ViewAnswer) -> Iterator[Table]:
    for section in answer.sections:
        yield openings(section)
        yield look_ups(section)
        if section.followed:
            yield follows(section)
    if growths := list(answer.growths()):
        page = table(
            f"following a commit, the best in the largest table over that in the smallest; bar: {SYNC_BAR:g}",
            ("files", "ratio"),
        )
        for title, files, ratio in growths:
            page.add_row(title, f"{files:,}", f"{ratio:.2f}")
        yield page


def openings(section: ViewSection) -> Table:
    page = table(
        f"{section.shape.label}: from nothing until answers; bars: {seconds(READY_BAR_S)}, {BYTES_BAR} bytes a file",
        ("for one partition", "for any", "requests", "memory, bytes a file"),
    )
    for row in section.rows:
        grown, opening = section.bytes_per_file(row), row.opening
        page.add_row(
            row.title,
            _seconds(opening.first_s),
            _seconds(opening.ready_s),
            ", ".join(f"{count} {kind}" for kind, count in (opening.requests or {}).items()),
            "" if grown is None else f"{grown:,.0f}",
        )
    return page


def look_ups(section: ViewSection) -> Table:
    page = table(
        f"{section.shape.label}: look-ups; bars for many: {seconds(P50_BAR_S)}, and {seconds(P99_BAR_S)} at 99 %",
        ("alone: median", "99 %", "many: median", "99 %", "99.9 %", "a second"),
    )
    for row in section.rows:
        alone, load = row.look_ups.alone, row.look_ups.load
        if alone is None:
            continue
        page.add_row(
            row.title,
            *_quantiles(alone)[:2],
            *_quantiles(None if load is None else load.latency),
            "" if load is None else f"{load.rate:,.0f}",
        )
    return page


def follows(section: ViewSection) -> Table:
    page = table(
        f"{section.shape.label}: following commits of so many files: synced / answered",
        [f"{files:,}" for files in section.followed],
    )
    for row in section.rows:
        if row.syncs:
            found = (row.sync(files) for files in section.followed)
            page.add_row(
                row.title,
                *("" if sync is None else f"{seconds(sync.synced_s)} / {seconds(sync.answered_s)}" for sync in found),
            )
    return page


def _quantiles(found: Latency | None) -> tuple[str, str, str]:
    return ("", "", "") if found is None else (seconds(found.p50_s), seconds(found.p99_s), seconds(found.p999_s))


def _seconds(value: float | None) -> str:
    return "" if value is None else seconds(value)
