"""An answer for people: the machine, the method, and a table for each case on each place."""

from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table

from tallymark.bench.answer import OURS
from tallymark.bench.paired import Estimate
from tallymark.bench.report import seconds
from tallymark.bench.writes.answer import WriteAnswer, WriteRow, WriteSection, cpu, wall

FIGURES = {
    "files": "files",
    "markers": "markers",
    "marker_objects": "objects that hold them",
    "marker_wait_s": "tasks' wait for markers",
    "after_commit_s": "cleaning after the commit",
}
"""What writers say of themselves, as it is shown."""


def show(page: Console, answer: WriteAnswer) -> None:
    page.print(f"{answer.machine}\n")
    page.print(f"{answer.method}")
    for section in answer.sections:
        page.print()
        page.print(table(section))
        for text in notes(section):
            page.print(text)


def table(section: WriteSection) -> Table:
    page = Table(title=f"{section.label}; {section.place} ({section.where})", title_justify="left", box=box.SIMPLE_HEAD)
    page.add_column("", no_wrap=True)
    for name in ("wall", "Tallymark / it (95 %)", "CPU", "Tallymark / it (95 %)", "JVM", "Python"):
        page.add_column(name, justify="right")
    for row in section.rows:
        page.add_row(*_cells(row, section.ours))
    return page


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
    for line in section.published:
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
