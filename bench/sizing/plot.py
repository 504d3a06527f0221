"""An answer as one SVG: files against bytes written with the exact solver's curve, and the sizes of the files left."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tallymark.bench.sizing.answer import Frontier, SizingAnswer, SizingRow
from tallymark.bench.sizing.figures import PARTS
from tallymark.bench.sizing.frontier import curve
from tallymark.bench.svg import FAINT, GRID, INK, document, line, stacked, text

WIDTH = 980
TOP, FOOT = 72, 50

LEFT, RIGHT = 70, 740
"""The frontier's axes."""
CURVE_HEIGHT = 300
CURVE_HEAD, CURVE_FOOT = 44, 56

BARS_LEFT, BAR, GAP = 270, 60, 8
"""Of a histogram: where it begins, and how wide a bar is."""
BARS_HEIGHT, PANEL_HEAD, PANEL_FOOT = 44, 40, 30

COLOURS = {"balanced": "#1a7f4b", "hudi": "#c2410c", "plain": "#5b6470"}
TARGET = "#d5ecd9"

PLOTTED = ("iceberg",)
"""Whole loads with a histogram: the others have a few sizes only."""

PLOTTED_WRITTEN = ("iceberg", "drift")

AMPLIFICATIONS = (1, 2, 3, 5, 10, 20, 50, 100)
COUNTS = (1, 2, 5, 10, 20, 50, 100, 200)

EXPLAINED = (
    "Bars: files by their size, as a part of the largest that one is to have; a side's highest is its commonest size. "
    "Green: within 10 % of that size."
)


@dataclass(frozen=True, slots=True)
class _Histogram:
    side: str
    title: str
    counts: Sequence[int]

    def drawn(self, bottom: int) -> Iterator[str]:
        yield text(24, bottom - 14, self.title)
        yield text(24, bottom, f"{sum(self.counts):,} files", colour=FAINT, size=11)
        yield line(BARS_LEFT, bottom, _bar_x(len(self.counts)) - GAP, bottom, GRID)
        highest = max(self.counts)
        for number, count in enumerate(self.counts):
            if count:
                height = max(1.0, BARS_HEIGHT * count / highest)
                yield (
                    f'<rect x="{_bar_x(number)}" y="{bottom - height:.1f}" width="{BAR}" height="{height:.1f}" '
                    f'fill="{_colour(self.side)}"><title>{count:,} files</title></rect>'
                )


@dataclass(frozen=True, slots=True)
class _Sizes:
    """A panel of histograms, one a side."""

    label: str
    rows: Sequence[_Histogram]

    @property
    def height(self) -> int:
        return PANEL_HEAD + len(self.rows) * (BARS_HEIGHT + 12) + PANEL_FOOT

    def drawn(self, top: int) -> Iterator[str]:
        yield text(24, top + 22, self.label, weight="600")
        yield from _target(top + PANEL_HEAD, top + self.height - PANEL_FOOT)
        bottom = top + PANEL_HEAD
        for row in self.rows:
            bottom += BARS_HEIGHT
            yield from row.drawn(bottom)
            bottom += 12
        for number, words in enumerate(_edges()):
            yield text(_bar_x(number) + BAR / 2, bottom + 8, words, colour=FAINT, anchor="middle", size=10)


def draw(answer: SizingAnswer) -> str:
    """A whole SVG document, on white."""
    panels = [*_panels(answer)]
    curve_height = CURVE_HEAD + CURVE_HEIGHT + CURVE_FOOT
    height = TOP + curve_height + sum(panel.height for panel in panels) + FOOT
    parts = [text(24, 32, "How large files become, and what is rewritten for it", size=17, weight="600")]
    parts.append(
        text(
            24, 53, "Plans are those of the planner, in arithmetic; what was written is written by Spark", colour=FAINT
        )
    )
    parts += _frontier(answer.frontier, TOP)
    parts += stacked(panels, top=TOP + curve_height)
    parts += _footing(answer, height)
    return document(parts, width=WIDTH, height=height)


def _panels(answer: SizingAnswer) -> Iterator[_Sizes]:
    for section in answer.at_once:
        if section.shape in PLOTTED:
            firsts = [(row, row.first) for row in section.rows]
            rows = [_Histogram(row.side, row.title, first.histogram) for row, first in firsts if first is not None]
            yield _Sizes(f"plans, whole load: {section.label}", rows)
    for section in answer.streams:
        rows = [_Histogram(row.side, row.title, row.figures.histogram) for row in section.rows]
        yield _Sizes(f"plans, as it arrives: {section.label}", rows)
    for written in answer.written:
        if written.case in PLOTTED_WRITTEN:
            rows = [_Histogram(row.side, row.title, written.histogram(row)) for row in written.rows]
            yield _Sizes(f"written: {written.label}", rows)


def _frontier(found: Frontier, top: int) -> Iterator[str]:
    yield text(24, top + 22, f"{found.label}: files left of each partition", weight="600")
    top += CURVE_HEAD
    bottom = top + CURVE_HEIGHT
    x, y = _Axis(LEFT, RIGHT, AMPLIFICATIONS[-1] * 1.2), _Axis(bottom, top, max(found.appends, 2))
    for tick in AMPLIFICATIONS:
        yield line(x(tick), top, x(tick), bottom, GRID)
        yield text(x(tick), bottom + 16, f"{tick}", colour=FAINT, anchor="middle", size=11)
    for tick in filter(lambda tick: tick <= found.appends, COUNTS):
        yield line(LEFT, y(tick), RIGHT, y(tick), GRID)
        yield text(LEFT - 8, y(tick) + 4, f"{tick}", colour=FAINT, anchor="end", size=11)
    yield text((LEFT + RIGHT) / 2, bottom + 36, "bytes written for each byte inserted", colour=FAINT, anchor="middle")
    exact = " ".join(f"{x(1 + point.rewritten):.1f},{y(point.files):.1f}" for point in curve(found.appends))
    yield f'<polyline points="{exact}" fill="none" stroke="{INK}" stroke-width="1.5"/>'
    yield text(RIGHT + 24, top + 14, "exact solver, which knows", size=11)
    yield text(RIGHT + 24, top + 28, "what is to come", size=11)
    yield line(RIGHT + 4, top + 10, RIGHT + 20, top + 10, INK, width=1.5)
    for row in found.rows:
        yield from _point(row, x(1 + row.figures.rewritten), y(found.files(row)))
    for number, (kind, words) in enumerate(
        (("balanced", "balanced, by its budget"), ("hudi", "hudi"), ("plain", "no sizing"))
    ):
        at = top + 52 + 20 * number
        yield _dot(RIGHT + 12, at - 4, COLOURS[kind], words)
        yield text(RIGHT + 24, at, words, size=11)


def _point(row: SizingRow, x: float, y: float) -> Iterator[str]:
    colour = _colour(row.side)
    yield _dot(x, y, colour, f"{row.title}: {row.figures.rewritten:.2f} rewritten")
    if row.budget is not None:
        yield text(x + 7, y - 6, f"{row.budget:g}", colour=colour, size=11)


def _target(top: int, bottom: int) -> Iterator[str]:
    """Behind the bars: within 10 % of the maximum."""
    x = _bar_x(PARTS.index(1.1)) - GAP / 2
    yield f'<rect x="{x}" y="{top}" width="{BAR + GAP}" height="{bottom - top}" fill="{TARGET}"/>'


def _edges() -> Iterator[str]:
    for part in PARTS:
        yield f"≤ {_part(part)}"
    yield f"> {_part(PARTS[-1])}"


def _part(part: float) -> str:
    return f"1/{round(1 / part)}" if part <= 0.5 else f"{part:g}"


def _bar_x(number: int) -> int:
    return BARS_LEFT + number * (BAR + GAP)


def _colour(side: str) -> str:
    """Of the policy, whatever its budget."""
    return COLOURS.get(side.partition("-")[0], COLOURS["plain"])


@dataclass(frozen=True, slots=True)
class _Axis:
    """Logarithmic, from 1 on."""

    low: float
    high: float
    last: float

    def __call__(self, value: float) -> float:
        return self.low + math.log(value) / math.log(self.last) * (self.high - self.low)


def _dot(x: float, y: float, colour: str, tip: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"><title>{escape(tip)}</title></circle>'


def _footing(answer: SizingAnswer, height: int) -> Iterator[str]:
    where = f"{answer.began.date().isoformat()}; {answer.machine.python}"
    yield text(
        24,
        height - 26,
        EXPLAINED,
        size=11,
        colour=FAINT,
    )
    yield text(24, height - 11, where, colour=FAINT, size=11)
