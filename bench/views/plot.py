"""An answer as one SVG: for each size of table how long each side takes to answer, on a logarithmic axis."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tallymark.bench.report import seconds
from tallymark.bench.svg import FAINT, GRID, INK, document, line, stacked, text
from tallymark.bench.views.answer import P50_BAR_S, P99_BAR_S, ViewAnswer, ViewRow, ViewSection
from tallymark.bench.views.latency import Latency

WIDTH = 980
LEFT, RIGHT = 290, 800
"""Where the axis begins and ends; titles stand before it, what it takes to be ready after it."""
ROW, HEAD, TOP, FOOT = 26, 62, 98, 50

S_MIN, S_MAX = 1e-6, 1.0
"""The axis. What lies outside is drawn at its edge."""

OURS_COLOUR, OTHERS_COLOUR = "#1a7f4b", "#7b8492"


def draw(answer: ViewAnswer) -> str:
    """A whole SVG document, on white."""
    panels = [_Panel(section) for section in answer.sections]
    height = TOP + sum(panel.height for panel in panels) + FOOT
    parts = [*_heading(answer)]
    parts += stacked(panels, top=TOP)
    parts += _footing(answer, height)
    return document(parts, width=WIDTH, height=height)


@dataclass(frozen=True, slots=True)
class _Panel:
    section: ViewSection

    @property
    def rows(self) -> list[ViewRow]:
        """Of those who were asked."""
        return [row for row in self.section.rows if row.look_ups.alone is not None]

    @property
    def height(self) -> int:
        return HEAD + ROW * len(self.rows)

    def drawn(self, top: int) -> Iterator[str]:
        yield text(24, top + 25, self.section.shape.label, weight="600")
        bottom = top + self.height - 6
        for power in range(-6, 1):
            tick = 10.0**power
            yield line(_x(tick), top + HEAD - 14, _x(tick), bottom, GRID)
            yield text(_x(tick), top + HEAD - 18, seconds(tick), colour=FAINT, anchor="middle", size=11)
        for bar in (P50_BAR_S, P99_BAR_S):
            yield line(_x(bar), top + HEAD - 14, _x(bar), bottom, OURS_COLOUR)
        yield text(WIDTH - 24, top + HEAD - 18, "ready after", colour=FAINT, anchor="end", size=11)
        for number, row in enumerate(self.rows):
            yield from _row(row, top + HEAD + ROW * number + 6)


def _row(row: ViewRow, y: int) -> Iterator[str]:
    colour = OURS_COLOUR if row.is_ours else OTHERS_COLOUR
    yield text(24, y + 4, row.title, size=11.5)
    if row.look_ups.alone is not None:
        yield from _span(row.look_ups.alone, y - 4, colour, "#ffffff", f"{row.title}, one caller")
    if row.look_ups.load is not None:
        yield from _span(row.look_ups.load.latency, y + 4, colour, colour, f"{row.title}, many callers")
    if row.opening.ready_s is not None:
        yield text(WIDTH - 24, y + 4, seconds(row.opening.ready_s), anchor="end", size=11.5)


def _span(found: Latency, y: int, colour: str, fill: str, what: str) -> Iterator[str]:
    """From the median to what 99 of a hundred do not exceed."""
    words = f"{what}: median {seconds(found.p50_s)}, 99 % {seconds(found.p99_s)}, 99.9 % {seconds(found.p999_s)}"
    yield line(_x(found.p50_s), y, _x(found.p99_s), y, colour, width=2)
    yield line(_x(found.p99_s), y - 4, _x(found.p99_s), y + 4, colour, width=2)
    yield (
        f'<circle cx="{_x(found.p50_s):.1f}" cy="{y}" r="3.5" fill="{fill}" stroke="{colour}" stroke-width="1.5">'
        f"<title>{escape(words)}</title></circle>"
    )


def _heading(answer: ViewAnswer) -> Iterator[str]:
    yield text(24, 32, "How long until somebody knows which files a partition holds", size=17, weight="600")
    yield text(24, 53, f"Many callers: {answer.effort.schedule}", colour=FAINT)
    for x, fill, words in ((30, "#ffffff", "one caller alone"), (170, INK, "many, from when they were due")):
        yield f'<circle cx="{x}" cy="72" r="3.5" fill="{fill}" stroke="{INK}" stroke-width="1.5"/>'
        yield text(x + 10, 76, words)
    yield text(
        400, 76, "a line goes from the median to the 99th percentile; green lines: the bars for many", colour=FAINT
    )


def _footing(answer: ViewAnswer, height: int) -> Iterator[str]:
    machine = answer.machine
    busy = f"load before {machine.load:.1f}, after {answer.load_after:.1f}"
    where = f"{answer.began.date().isoformat()}; {machine.cpu}, {machine.core_count} cores; {busy}"
    libraries = ", ".join(f"{name} {release}" for name, release in machine.libraries.items())
    yield text(24, height - 26, where, colour=FAINT, size=11)
    yield text(24, height - 11, f"{machine.python}, {libraries}", colour=FAINT, size=11)


def _x(value_s: float) -> float:
    share = math.log(min(max(value_s, S_MIN), S_MAX) / S_MIN) / math.log(S_MAX / S_MIN)
    return LEFT + share * (RIGHT - LEFT)
