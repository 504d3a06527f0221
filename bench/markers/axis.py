"""What the panels of the plot share: where axes lie, and the colours of sides."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tallymark.bench.markers.answer import is_hudi
from tallymark.bench.svg import FAINT, GRID, line, text

WIDTH = 900
LEFT, RIGHT = 250, 740
"""Where an axis begins and ends; titles stand before it, figures after it."""
ROW, HEAD = 24, 64

OURS_COLOUR, DIRECT_COLOUR, HUDI_COLOUR = "#1a7f4b", "#3b6fb6", "#7b8492"


@dataclass(frozen=True, slots=True)
class Decades:
    """A logarithmic axis, by whole powers of ten."""

    low: int
    high: int

    @classmethod
    def around(cls, values: Sequence[float]) -> "Decades":
        low = math.floor(math.log10(min(values)))
        return cls(low, max(low + 1, math.ceil(math.log10(max(values)))))

    def share(self, value: float) -> float:
        return min(max((math.log10(value) - self.low) / (self.high - self.low), 0.0), 1.0)

    def x(self, value: float) -> float:
        return LEFT + self.share(value) * (RIGHT - LEFT)

    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]

    def drawn(self, top: int, bottom: int, words: Sequence[str]) -> Iterator[str]:
        for tick, word in zip(self.ticks(), words, strict=True):
            yield line(self.x(tick), top, self.x(tick), bottom, GRID)
            yield text(self.x(tick), top - 4, word, colour=FAINT, anchor="middle", size=11)


def bar(share: float, y: int, colour: str, tip: str, *, height: int = 14) -> str:
    """From where an axis begins."""
    size = f'width="{max(share * (RIGHT - LEFT), 1):.1f}" height="{height}"'
    return f'<rect x="{LEFT}" y="{y - height / 2:.1f}" {size} fill="{colour}"><title>{escape(tip)}</title></rect>'


def colour_of(side: str) -> str:
    if is_hudi(side):
        return HUDI_COLOUR
    return DIRECT_COLOUR if side.endswith("direct") else OURS_COLOUR
