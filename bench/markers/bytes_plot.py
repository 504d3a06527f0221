"""A panel of the plot: bytes written against markers, both axes from zero."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tallymark.bench.markers.axis import LEFT, RIGHT, colour_of
from tallymark.bench.markers.names import MARKER_BYTES
from tallymark.bench.svg import FAINT, GRID, INK, line, text

Points = Sequence[tuple[int, int]]
"""Markers, and bytes that were written for them."""

STEPS = 4
"""Between zero and the end of an axis, at most so many."""


@dataclass(frozen=True, slots=True)
class BytesPanel:
    sides: Mapping[tuple[str, str], Points]
    """By name and title."""
    load: str

    height = 250

    def drawn(self, top: int) -> Iterator[str]:
        bottom, upper = top + self.height - 34, top + 50
        most = max(count for points in self.sides.values() for count, _ in points)
        largest = max(size for points in self.sides.values() for _, size in points)

        def at(count: float, size: float) -> tuple[float, float]:
            return LEFT + count / most * (RIGHT - LEFT), bottom - size / largest * (bottom - upper)

        yield text(24, top + 25, "Bytes written against markers of a job", weight="600", faint=self.load)
        for count in ticks(most):
            x, _ = at(count, 0)
            yield line(x, upper, x, bottom, GRID)
            yield text(x, bottom + 15, f"{count:,.0f}", colour=FAINT, anchor="middle", size=11)
        for size in ticks(largest):
            _, y = at(0, size)
            yield line(LEFT, y, RIGHT, y, GRID)
            yield text(LEFT - 8, round(y) + 4, size_words(size), colour=FAINT, anchor="end", size=11)
        for (side, title), points in self.sides.items():
            yield _path([at(0, 0), *(at(*point) for point in points)], colour_of(side), title)
            words = f"{title.partition(',')[0]}: {size_words(points[-1][1])}"
            yield text(RIGHT + 6, round(at(*points[-1])[1]) - 2, words, colour=colour_of(side), size=11)
        yield _path([at(0, 0), at(most, most * MARKER_BYTES)], INK, "the markers themselves", dash="3 3")


def ticks(most: float) -> list[float]:
    """Round values from zero on, the last one at most that."""
    power = 10.0 ** math.floor(math.log10(most))
    step = next(each * power for each in (0.25, 0.5, 1.0, 2.5, 5.0) if most / (each * power) <= STEPS)
    return [number * step for number in range(int(most / step) + 1)]


def size_words(value: float) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:g} B"


def _path(points: Sequence[tuple[float, float]], colour: str, tip: str, *, dash: str = "none") -> str:
    along = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    style = f'fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'
    return f'<polyline points="{along}" {style}><title>{escape(tip)}</title></polyline>'
