"""What was written, for people: two tables for each case."""

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.table import Table

from tallymark.bench.page import print_tables, table
from tallymark.bench.paired import Estimate
from tallymark.bench.report import seconds
from tallymark.bench.sizing.written.answer import WrittenRow, WrittenSection
from tallymark.bench.sizing.written.fill import BAR_BYTES, FILE_BYTES, FillMemory
from tallymark.bench.writes.answer import Reading, cpu, wall

PEAKS = {"peak_python_bytes": "peak, Python", "peak_jvm_bytes": "peak, JVM"}


def show(page: Console, sections: Iterable[WrittenSection], method: str) -> None:
    page.print(f"\n{method}")
    for section in sections:
        print_tables(page, (sizes(section), costs(section)), section.absent)


def sizes(section: WrittenSection) -> Table:
    title = f"written: {section.label}; files of at most {_mb(section.max_file_bytes)}"
    page = table(
        title,
        (
            "files",
            "minimum",
            "small files",
            "off the maximum, from the third",
            "off the plan",
            "largest",
            "left",
            "written / left",
        ),
    )
    for row in section.rows:
        errors = section.error_p95(row), section.plan_error_p95(row)
        page.add_row(
            row.title,
            f"{len(row.files):,}",
            f"{section.minimum(row):,}",
            f"{section.small_share(row):.0%}",
            *("" if error is None else f"{error:.1%}" for error in errors),
            f"{section.largest(row):.2f} x",
            _mb(row.bytes),
            f"{row.written_over_left:.2f}",
        )
    return page


def costs(section: WrittenSection) -> Table:
    page = table("what it took", ("wall", "Tallymark / it", "CPU", "Tallymark / it", *PEAKS.values()))
    for row in section.rows:
        page.add_row(row.title, *_times(row, section.ours), *_peaks(row))
    return page


def fills(found: Iterable[FillMemory]) -> Table:
    title = f"memory of a task that fills a file of {_mb(FILE_BYTES)}; bar: {_mb(BAR_BYTES)}"
    page = table(title, ("the file", "with the new rows", "before the task", "peak", "in bar"))
    for fill in found:
        sizes = (fill.old_bytes, fill.new_bytes, fill.before_bytes, fill.peak_bytes)
        page.add_row(fill.rows, *map(_mb, sizes), "yes" if fill.peak_bytes <= BAR_BYTES else "no")
    return page


def _times(row: WrittenRow, ours: WrittenRow | None) -> Iterator[str]:
    for reading in (wall, cpu):
        yield seconds(row.total(reading))
        yield "" if ours is None or ours is row else _ratio(row, ours, reading)


def _ratio(row: WrittenRow, ours: WrittenRow, reading: Reading) -> str:
    found: Estimate = row.ratio(ours, reading)
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"


def _peaks(row: WrittenRow) -> Iterator[str]:
    for name in PEAKS:
        value = row.figure(name)
        yield _mb(value) if value else ""


def _mb(count: float) -> str:
    mib = count / (1 << 20)
    return f"{mib:,.0f} MiB" if mib >= 100 else f"{mib:.3g} MiB"
