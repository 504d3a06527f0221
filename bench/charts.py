"""Charts of a question's tables, drawn with Matplotlib (``pip install 'tallymark[bench]'``)."""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from tallymark.bench.paired import Estimate
from tallymark.bench.results import Chart, Table
from tallymark.engine.errors import MissingExtra

WIDTH_IN = 10.0
ROW_IN, HEAD_IN, LINES_IN = 0.26, 1.0, 3.2
"""Heights of a row, of a panel without rows, and of a panel of lines."""


def draw_panels(panels: Sequence[tuple[Table, Chart]], path: Path, *, footer: str) -> None:
    """Write an SVG with one panel below the other.

    Raises:
        MissingExtra: Matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("--svg needs Matplotlib: pip install 'tallymark[bench]'") from error
    heights = [LINES_IN if chart.x else HEAD_IN + ROW_IN * len(table.rows) for table, chart in panels]
    with mpl.rc_context({"svg.hashsalt": "tallymark", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(WIDTH_IN, sum(heights) or 1), layout="constrained")
        if panels:
            axes = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
            for (table, chart), [axis] in zip(panels, axes, strict=True):
                axis.set_title(table.title, loc="left", fontsize=9, fontweight="bold", wrap=True)
                (_lines if chart.x else _marks)(axis, table, chart)
        figure.supxlabel(footer, fontsize=7, color="gray")
        figure.savefig(path, format="svg", metadata={"Date": None})


def _marks(axis: Any, table: Table, chart: Chart) -> None:
    """Draw one line of marks per row, in the order of the table."""
    labels = [str(getattr(row, chart.label)) for row in table.rows]
    for name in chart.values:
        found = [(place, getattr(row, name)) for place, row in enumerate(table.rows) if getattr(row, name) is not None]
        places, values = [place for place, _ in found], [_middle(value) for _, value in found]
        spans = [_span(value) for _, value in found]
        heading = table.rows[0].__dataclass_fields__[name].metadata.get("heading", name)
        axis.errorbar(values, places, xerr=list(zip(*spans, strict=True)) or None, fmt="o", markersize=4, label=heading)
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(len(labels) - 0.5, -0.5)
    _finish(axis, chart)


def _lines(axis: Any, table: Table, chart: Chart) -> None:
    """Draw one line per label: the value over ``x``."""
    [name] = chart.values
    assert chart.x is not None
    rows = sorted(table.rows, key=lambda row: str(getattr(row, chart.label)))
    for label, group in groupby(rows, key=attrgetter(chart.label)):
        points = sorted((getattr(row, chart.x), getattr(row, name)) for row in group)
        axis.plot(*zip(*points, strict=True), marker="o", markersize=3, label=str(label))
    axis.set_ylabel(name.replace("_", " "))
    if chart.is_log:
        axis.set_yscale("log")
    _finish(axis, chart)


def _finish(axis: Any, chart: Chart) -> None:
    if chart.is_log:
        axis.set_xscale("log")
    elif chart.x is None:
        axis.set_xlim(left=0)
    axis.set_xlabel(chart.axis)
    axis.grid(visible=True, axis="x", color="lightgray")
    axis.legend(fontsize=7, loc="best")


def _middle(value: float | Estimate) -> float:
    return value.value if isinstance(value, Estimate) else float(value)


def _span(value: float | Estimate) -> tuple[float, float]:
    if isinstance(value, Estimate):
        return value.value - value.low, value.high - value.value
    return 0.0, 0.0
