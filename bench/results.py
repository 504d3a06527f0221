"""Results of a question: tables of dataclass rows, which become text for a terminal, a JSON document and an SVG chart.

A question declares each row as a dataclass. Fields made by ``column`` are shown in the table; all fields are in the
JSON document. Times are seconds, sizes are bytes.
"""

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from tallymark.bench.machine import Machine
from tallymark.bench.paired import Estimate

FORMAT = 2
"""Of the JSON document. Keys may be added; the number grows when a key is removed or changes its meaning."""

WIDTH = 190
"""Of the tables where the output is not a terminal."""

Row = Any
"""An instance of a question's dataclass."""

Show = Callable[[Any], str]


def column(heading: str, show: Show | None = None, *, default: Any = dataclasses.MISSING) -> Any:
    """Return a dataclass field that is a column of the table; ``show`` turns its value into text."""
    metadata = {"heading": heading, "show": show}
    return field(metadata=metadata) if default is dataclasses.MISSING else field(metadata=metadata, default=default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """How a table is drawn: one mark per row for each of ``values``, or with ``x`` a line per label."""

    values: tuple[str, ...]
    label: str = "title"
    axis: str = ""
    x: str | None = None
    is_log: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    title: str
    rows: Sequence[Row]
    charts: tuple[Chart, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)
    """Sides that took no part, with the reason."""

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the headings and the text of each row. Columns without any text are left out."""
        shown = [each for each in dataclasses.fields(self.rows[0]) if "heading" in each.metadata] if self.rows else []
        texts = [[_text(getattr(row, each.name), each.metadata["show"]) for each in shown] for row in self.rows]
        used = [number for number in range(len(shown)) if number == 0 or any(row[number] for row in texts)]
        return [shown[number].metadata["heading"] for number in used], [[row[n] for n in used] for row in texts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    question: str
    machine: Machine
    started: datetime
    method: str
    """How it was measured, for people."""
    settings: Mapping[str, Any]
    """What was chosen."""
    tables: Sequence[Table]

    def document(self) -> dict[str, Any]:
        """Return what is saved as JSON."""
        return {
            "format": FORMAT,
            "question": self.question,
            "started": self.started.isoformat(timespec="seconds"),
            "machine": asdict(self.machine),
            "load_after": os.getloadavg()[0],
            "settings": dict(self.settings),
            "tables": [
                {"title": table.title, "rows": [_plain(row) for row in table.rows], "absent": dict(table.absent)}
                for table in self.tables
            ],
        }

    def show(self, page: Console) -> None:
        page.print(f"{self.machine}\n\n{self.method}")
        for table in self.tables:
            if table.rows:
                page.print()
                page.print(rich_table(table))
            for title, reason in table.absent.items():
                page.print(f"  without {title}: {reason}")

    def save(self, json_path: Path | None, svg_path: Path | None) -> None:
        if json_path:
            json_path.write_text(json.dumps(self.document(), indent=1, default=str) + "\n")
        if svg_path:
            draw(self, svg_path)


def results(question: str, method: str, settings: object, tables: Iterable[Table]) -> Results:
    """Return the results of a question; the tables are made after the machine's load was read."""
    started, machine = datetime.now(UTC), Machine.here()
    chosen = asdict(settings) if dataclasses.is_dataclass(settings) and not isinstance(settings, type) else {}
    return Results(
        question=question, machine=machine, started=started, method=method, settings=chosen, tables=tuple(tables)
    )


def rich_table(table: Table) -> RichTable:
    width = min(len(table.title), WIDTH)
    page = RichTable(title=table.title, title_justify="left", box=box.SIMPLE_HEAD, min_width=width)
    headings, texts = table.cells()
    for number, heading in enumerate(headings):
        page.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for row in texts:
        page.add_row(*row)
    return page


def draw(found: Results, path: Path) -> None:
    """Draw the tables that have charts, one panel per chart.

    Raises:
        MissingExtra: Matplotlib is not installed.
    """
    from tallymark.bench.charts import draw_panels

    panels = [(table, chart) for table in found.tables if table.rows for chart in table.charts]
    draw_panels(panels, path, footer=f"{found.started.date().isoformat()}; {found.machine.cpu}, {found.machine.python}")


def seconds(value: float) -> str:
    """Return three digits and a unit: ``1.25 ms``."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if abs(value) >= 0.9995 * scale:
            return f"{_three_digits(value / scale)} {unit}"
    return f"{_three_digits(value / 1e-6)} µs"


def size(value: float) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= scale:
            return f"{value / scale:,.1f} {unit}"
    return f"{value:,.0f} B"


def micros(value: float) -> str:
    return f"{value:,.1f} µs" if value < 100 else f"{value:,.0f} µs"


def percent(value: float) -> str:
    return f"{value:.1%}"


def number(value: float) -> str:
    return f"{value:,.0f}"


def signed_seconds(found: Estimate) -> str:
    """Return a difference with its interval: ``+17.2 µs (+15.9 µs to +19.2 µs)``."""
    low, high = _signed(found.low), _signed(found.high)
    return f"{_signed(found.value)} ({low} to {high})"


def _signed(value: float) -> str:
    return f"{'+' if value >= 0 else ''}{seconds(value)}"


def _three_digits(value: float) -> str:
    decimals = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:,.{decimals}f}"


def _text(value: object, show: Show | None) -> str:
    if value is None:
        return ""
    if show is not None:
        return show(value)
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.2f}"
        case Estimate(median, low, high):
            return f"{median:.2f} ({low:.2f} to {high:.2f})"
        case _:
            return str(value)


def _plain(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = asdict(row)
    return found


VERDICTS: Mapping[str | None, str] = {"within": "yes", "over": "no", "unclear": "?", None: ""}
