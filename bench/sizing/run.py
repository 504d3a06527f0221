"""The whole of ``python -m tallymark.bench sizing``: half a minute of arithmetic, and then what Spark writes."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from tallymark.bench.machine import Machine
from tallymark.bench.sizing import shapes
from tallymark.bench.sizing.answer import Example, Frontier, SizingAnswer, SizingRow, SizingSection
from tallymark.bench.sizing.figures import Figures, figures
from tallymark.bench.sizing.replay import Planner, planned, replay
from tallymark.bench.sizing.shape import Shape
from tallymark.bench.sizing.sides import BALANCED, BUDGETS, HUDI, PLAIN, SIDES, Side, balanced
from tallymark.bench.sizing.speed import measure
from tallymark.bench.sizing.written.fill import measure_fills
from tallymark.bench.sizing.written.run import Asked
from tallymark.bench.sizing.written.run import run as write
from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.planning import plan

TIMES, TIMES_QUICK = 5, 3
"""Loads of a whole shape, one after the other: the first shows what is guessed, the third what has been learnt."""


def run(
    *,
    scale: float = 1.0,
    times: int = TIMES,
    planner: Planner = plan,
    written: Asked | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> SizingAnswer:
    """``scale``: times as many appends, and files in the table whose plan is timed. ``times``: loads of each shape.

    ``written`` is what Spark is to write besides. Whatever ends it, nothing is left of that.
    """
    began, machine = datetime.now(UTC), Machine.here()
    tell("sizing: the published example")
    examples = tuple(_example(side, planner) for side in (BALANCED, HUDI))
    tell("sizing: many small appends")
    frontier = _frontier(max(2, round(200 * scale)), max(1, round(50 * scale)), planner)
    tell("sizing: loads")
    at_once = tuple(_section(shape.at_once(times), planner, first=shape.at_once(1)) for shape in _whole())
    tell("sizing: streams")
    streams = tuple(_section(shape, planner) for shape in _streams(times))
    tell("sizing: the time of a plan")
    speeds = (
        measure(SizingSettings(policy="balanced"), planner, scale=scale),
        measure(SizingSettings(policy="hudi"), planner, scale=scale),
    )
    return SizingAnswer(
        began=began,
        machine=machine,
        examples=examples,
        frontier=frontier,
        at_once=at_once,
        streams=streams,
        speeds=speeds,
        written=() if written is None else write(written, tell=tell),
        written_method="" if written is None else str(written),
        fills=() if written is None else measure_fills(written.parent, tell=tell),
    )


def _whole() -> Iterable[Shape]:
    yield shapes.example()
    yield shapes.appends()
    yield shapes.iceberg()
    yield shapes.drift("longer")


def _streams(times: int) -> Iterable[Shape]:
    yield shapes.iceberg(loads=times)
    yield from map(shapes.drift, shapes.DRIFTS)


def _example(side: Side, planner: Planner) -> Example:
    shape = shapes.example()
    settings = side.settings(shape)
    assert settings is not None, "a side that plans"
    files = planned(shape, settings, planner)
    rows = tuple(file.rows for file in files)
    return Example(
        title=side.title,
        rows=rows,
        fills=sum(file.fill is not None for file in files),
        is_as_published=sorted(rows) == sorted(shapes.EXAMPLE_PLANNED),
    )


def _frontier(appends: int, partitions: int, planner: Planner) -> Frontier:
    shape = shapes.appends(appends, partitions)
    sides = (*map(balanced, BUDGETS), HUDI, PLAIN)
    return Frontier(
        label=shape.label,
        appends=appends,
        partitions=partitions,
        rows=tuple(_row(side, shape, planner) for side in sides),
    )


def _section(shape: Shape, planner: Planner, first: Shape | None = None) -> SizingSection:
    return SizingSection(
        shape=shape.name,
        label=shape.label,
        max_file_bytes=shape.max_file_bytes,
        rows=tuple(_row(side, shape, planner, first) for side in SIDES),
    )


def _row(side: Side, shape: Shape, planner: Planner, first: Shape | None = None) -> SizingRow:
    return SizingRow(
        side=side.name,
        title=side.title,
        figures=_figures(side, shape, planner),
        first=None if first is None else _figures(side, first, planner),
        budget=side.budget,
    )


def _figures(side: Side, shape: Shape, planner: Planner) -> Figures:
    return figures(shape, replay(shape, side.settings(shape), planner))
