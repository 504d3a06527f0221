"""An answer for people: the machine, the method, and one table a store."""

from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table

from tallymark.bench.answer import OURS, Answer, Row, Section

SIDES = {"plain": "its own call", "thread": "in a thread", OURS: "Tallymark"}
"""What the sides are called above their columns."""


WIDTH = 128
"""Of the tables where no terminal says otherwise."""


def show(page: Console, answer: Answer) -> None:
    for text in introduction(answer):
        page.print(text)
    for section in answer.sections:
        page.print()
        page.print(table(section))


def introduction(answer: Answer) -> Iterator[str]:
    yield f"{answer.machine}\n"
    yield f"{answer.method}\n"
    told = (
        "Times are of one call; of rows with several at once, the time that passes for each. The cost is Tallymark's "
        "less that of the bare library called in a worker thread, as an asynchronous program has to; of data files, "
        "which blocking code writes, less that of its plain call."
    )
    if answer.bars:
        told += f" Bar: {answer.bars} a call, whichever is larger; ? where the interval lies on both sides of it."
    yield told


def table(section: Section) -> Table:
    page = Table(
        title=f"{section.title} ({section.where}) beside {section.peer}", title_justify="left", box=box.SIMPLE_HEAD
    )
    page.add_column("", no_wrap=True)
    for side in _sides(section):
        page.add_column(section.peer if side == "plain" else SIDES[side], justify="right")
    page.add_column("cost (95 %)", justify="right")
    page.add_column("ratio (95 %)", justify="right")
    page.add_column("in bar")
    for row in section.rows:
        page.add_row(row.label, *_times(row, _sides(section)), *_cost(row), _word(row))
    return page


def seconds(value: float) -> str:
    """Three digits and a unit: ``1.25 ms``."""
    unit, scale = _unit(value)
    return f"{_three_digits(value / scale)} {unit}"


def signed(value: float) -> str:
    return f"{'+' if value >= 0 else ''}{seconds(value)}"


def in_unit_of(other: float, value: float) -> str:
    """A signed number without its unit, which is that of the other."""
    _, scale = _unit(other)
    return f"{'+' if value >= 0 else ''}{_three_digits(value / scale)}"


def _unit(value: float) -> tuple[str, float]:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if abs(value) >= 0.9995 * scale:
            return unit, scale
    return "µs", 1e-6


def _three_digits(value: float) -> str:
    size = abs(value)
    decimals = 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{value:,.{decimals}f}"


def _sides(section: Section) -> list[str]:
    found = {side for row in section.rows for side in row.samples.per_call_s}
    return [side for side in SIDES if side in found]


def _times(row: Row, sides: list[str]) -> list[str]:
    return [seconds(row.per_call_s(side).value) if side in row.samples.per_call_s else "" for side in sides]


def _cost(row: Row) -> list[str]:
    found = row.against(row.reference)
    more, ratio = found.difference_s, found.ratio
    low, high = in_unit_of(more.value, more.low), in_unit_of(more.value, more.high)
    return [
        f"{signed(more.value)} ({low} to {high})",
        f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})",
    ]


def _word(row: Row) -> str:
    return {"within": "yes", "over": "no", "unclear": "?", None: ""}[row.verdict]
