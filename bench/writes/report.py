"""An answer for people: the machine, the method, and a table for each case on each place."""

from collections.abc import Iterable, Iterator

from rich import box
from rich.console import Console
from rich.table import Table

from tallymark.bench.answer import OURS
from tallymark.bench.paired import Estimate
from tallymark.bench.report import seconds
from tallymark.bench.writes.answer import WriteAnswer, WriteRow, WriteSection, cpu, wall

FIGURES = {
    "files": "files",
    "commit_s": "commit, after the last task",
    "after_commit_s": "cleaning after the commit",
}
"""What writers say of themselves, as it is shown below the times."""

MARKERS = {
    "markers": "markers",
    "marker_wait_s": "tasks' wait for them",
    "marker_objects": "objects",
    "marker_deletion_s": "deletion",
}
"""The columns of the table of markers. The wait is the sum over all tasks, which run side by side."""

REQUESTS = ("put", "copy", "get", "head", "list", "delete")
"""As the harness's own store counts them, over all that the side does in a write."""


def show(page: Console, answer: WriteAnswer) -> None:
    page.print(f"{answer.machine}\n")
    page.print(f"{answer.method}")
    for section in answer.sections:
        page.print()
        page.print(table(section))
        for extra in (markers(section), requests(section)):
            if extra.row_count:
                page.print(extra)
        for text in notes(section):
            page.print(text)


def table(section: WriteSection) -> Table:
    columns = ("wall", "Tallymark / it (95 %)", "CPU", "Tallymark / it (95 %)", "JVM", "Python")
    page = _table(f"{section.label}; {section.place} ({section.where})", columns)
    for row in section.rows:
        page.add_row(*_cells(row, section.ours))
    return page


def markers(section: WriteSection) -> Table:
    """What is known of each side's, with what others have published in the same table."""
    page = _table("markers", MARKERS.values())
    for row in section.rows:
        if row.figure("marker_objects") is not None or row.figure("markers") is not None:
            page.add_row(row.title, *(_known(row, name) for name in MARKERS))
    for line in section.published:
        if line.marker_objects is not None and page.row_count:
            page.add_row(f"published: {line.who}: {line.what}", "", "", f"{line.marker_objects:,}", line.deletion)
    return page


def requests(section: WriteSection) -> Table:
    page = _table(f"requests, and how many a file of {section.files:,}", (*REQUESTS, "a file"))
    for row in section.rows:
        counts = [row.figure(f"requests_{kind}") or 0 for kind in REQUESTS]
        if sum(counts):
            page.add_row(row.title, *(f"{count:,.0f}" for count in counts), f"{sum(counts) / section.files:.1f}")
    return page


def _table(title: str, columns: Iterable[str]) -> Table:
    page = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    page.add_column("")
    for name in columns:
        page.add_column(name, justify="right")
    return page


def _known(row: WriteRow, name: str) -> str:
    value = row.figure(name)
    return "" if value is None else _shown(name, value)


def notes(section: WriteSection) -> Iterator[str]:
    for row in section.rows:
        said = [
            f"{words} {_shown(name, value)}"
            for name, words in FIGURES.items()
            if (value := row.figure(name)) is not None
        ]
        if said:
            yield f"  {row.title}: {', '.join(said)}"
    for title, reason in section.absent.items():
        yield f"  without {title}: {reason}"
    for line in filter(lambda line: line.said, section.published):
        yield f"  published, not measured here: {line.who}: {line.what}: {line.said}"


def _cells(row: WriteRow, ours: WriteRow | None) -> list[str]:
    beside = ours if row.side != OURS else None
    return [
        row.title,
        seconds(row.median(wall)),
        "" if beside is None else _ratio(row.ratio(beside, wall)),
        seconds(row.median(cpu)),
        "" if beside is None else _ratio(row.ratio(beside, cpu)),
        seconds(row.median(lambda done: done.spent.jvm_s + done.spent.forks_s)),
        seconds(row.median(lambda done: done.spent.python_s + done.spent.driver_s)),
    ]


def _ratio(found: Estimate) -> str:
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"


def _shown(name: str, value: float) -> str:
    return seconds(value) if name.endswith("_s") else f"{value:,.0f}"
