"""An answer for people: the machine, the method, and a table for each part of the question."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Table

from tallymark.bench.page import print_tables, table
from tallymark.bench.report import seconds
from tallymark.bench.sizing.answer import Example, Frontier, SizingAnswer, SizingSection
from tallymark.bench.sizing.figures import Figures
from tallymark.bench.sizing.speed import BAR_S, Speed
from tallymark.bench.sizing.written import report as written

METHOD = """\
Nothing is written here: plans are those of the planner that jobs use, and each planned file becomes as large as its
rows make it (the writer's rule: up to 1.125 times the maximum, and beyond that another file). The minimum is what the
bytes of each partition need at least in files of the maximum. Error: |size - maximum| over the maximum, 95th percentile
of the files that the third commit and later ones wrote, without each commit's last of a partition. Rewritten: bytes of
small files that were written once more, for each byte inserted. Sizes leave out what a file takes beyond its rows.
Without sizing each task writes a file of its own in every partition, and rolls at the maximum."""


def show(page: Console, answer: SizingAnswer) -> None:
    page.print(f"{answer.machine}\n")
    page.print(METHOD)
    print_tables(page, tables(answer), {})
    if answer.written:
        written.show(page, answer.written, answer.written_method)
    if answer.fills:
        page.print()
        page.print(written.fills(answer.fills))


def tables(answer: SizingAnswer) -> Iterator[Table]:
    yield examples(answer.examples)
    yield frontier(answer.frontier)
    for section in answer.at_once:
        yield at_once(section)
    for section in answer.streams:
        yield stream(section)
    yield speeds(answer.speeds)


def examples(found: Sequence[Example]) -> Table:
    page = table("the published example: incoming rows of each planned file", ("filled", "new", "as published"))
    for example in found:
        filled, new = example.rows[: example.fills], example.rows[example.fills :]
        page.add_row(example.title, _rows(filled), _rows(new), "yes" if example.is_as_published else "no")
    return page


def frontier(found: Frontier) -> Table:
    page = table(
        f"{found.label}: files of a partition against bytes rewritten; in brackets, the policy's over the exact "
        "solver's, of bytes all that were written",
        ("files", "fewest, no more bytes", "rewritten", "least, as many files", "in bar", "small files"),
    )
    for row in found.rows:
        files, rewritten = found.files(row), row.figures.rewritten
        fewest, least = found.fewest(row), found.cheapest(row)
        page.add_row(
            row.title,
            f"{files:.4g}",
            f"{fewest.files} ({files / fewest.files:.2f})",
            f"{rewritten:.2f}",
            f"{least.rewritten:.2f} ({_over(1 + rewritten, 1 + least.rewritten)})",
            _word(found.is_in_bar(row)),
            f"{row.figures.small_share:.0%}",
        )
    return page


def at_once(section: SizingSection) -> Table:
    page = table(
        f"whole loads: {section.label}",
        ("files of the first", "minimum", "in bar", "error, from the third", "largest", "rewritten"),
    )
    for row in section.rows:
        first = row.first
        assert first is not None, "a section of whole loads"
        page.add_row(
            row.title,
            f"{first.files:,}",
            f"{first.minimum:,}",
            _word(first.files <= first.files_max),
            *_sizes(row.figures),
        )
    return page


def stream(section: SizingSection) -> Table:
    page = table(
        f"as it arrives: {section.label}",
        ("files", "minimum", "small files", "error, from the third", "largest", "rewritten"),
    )
    for row in section.rows:
        found = row.figures
        page.add_row(row.title, f"{found.files:,}", f"{found.minimum:,}", f"{found.small_share:.0%}", *_sizes(found))
    return page


def speeds(found: Iterable[Speed]) -> Table:
    page = table(f"CPU time of a plan; bar: {BAR_S:g} s", ("files", "partitions", "planned files", "best", "all"))
    for speed in found:
        page.add_row(
            f'policy "{speed.policy}"',
            *(f"{count:,}" for count in (speed.files, speed.partitions, speed.planned)),
            seconds(speed.best_s),
            ", ".join(map(seconds, speed.samples_s)),
        )
    return page


def _sizes(found: Figures) -> tuple[str, str, str]:
    error = "" if found.error_p95 is None else f"{found.error_p95:.1%}"
    return error, f"{found.largest:.2f} x", f"{found.rewritten:.2f}"


def _over(value: float, least: float) -> str:
    return f"{value / least:.2f}"


def _word(is_in_bar: bool | None) -> str:
    return {True: "yes", False: "no", None: ""}[is_in_bar]


def _rows(counts: Iterable[int]) -> str:
    return ", ".join(f"{count:,}" for count in counts) or "none"
