"""An answer as one SVG: for each row, what ours takes as a multiple of the reference, and the bar as a shaded stretch.

Rows without a bar are left out.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tallymark.bench.answer import OURS, Answer, Row, Section
from tallymark.bench.report import seconds, signed
from tallymark.bench.svg import FAINT, GRID, INK, document, line, stacked, text

WIDTH = 900
LEFT, RIGHT = 210, 660
"""Where the axis begins and ends; labels stand before it, figures after it."""
ROW, HEAD, TOP, FOOT = 24, 56, 88, 62

RATIO_MIN, RATIO_MAX = 0.33, 3.0
"""The axis. What lies outside is drawn at its edge as an arrow."""

TICKS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0)

BAND = "#d5ecd9"
WITHIN, OVER, UNCLEAR = "#1a7f4b", "#c2410c", "#5b6470"
COLOURS = {"within": WITHIN, "over": OVER, "unclear": UNCLEAR}


SUBTITLE = "Time of a call through Tallymark over the library's call in a worker thread (data files: its plain call)"


def draw(answer: Answer) -> str:
    """A whole SVG document, on white."""
    panels = [_Panel.of(section) for section in answer.sections]
    panels = [panel for panel in panels if panel.rows]
    height = TOP + sum(panel.height for panel in panels) + FOOT
    parts = [*_heading(answer.bars)]
    parts += stacked(panels, top=TOP)
    parts += _footing(answer, height)
    return document(parts, width=WIDTH, height=height)


@dataclass(frozen=True, slots=True)
class _Panel:
    section: Section
    rows: tuple[Row, ...]

    @classmethod
    def of(cls, section: Section) -> "_Panel":
        return cls(section, tuple(row for row in section.rows if row.bar is not None))

    @property
    def height(self) -> int:
        return HEAD + ROW * len(self.rows)

    def drawn(self, top: int) -> Iterator[str]:
        title = f"{self.section.title} beside {self.section.peer}"
        yield text(24, top + 25, title, weight="600", faint=self.section.where)
        yield from self._axis(top + HEAD - 2, top + self.height - 2)
        for number, row in enumerate(self.rows):
            yield from _row(row, self.section.peer, top + HEAD + ROW * number + ROW // 2)

    def _axis(self, top: int, bottom: int) -> Iterator[str]:
        for tick in TICKS:
            yield line(_x(tick), top, _x(tick), bottom, INK if tick == 1 else GRID)
            yield text(_x(tick), top - 5, f"{tick:g}", colour=FAINT, anchor="middle", size=11)
        yield text(RIGHT + 85, top - 5, "cost", colour=FAINT, anchor="end", size=11)
        yield text(WIDTH - 24, top - 5, "Tallymark", colour=FAINT, anchor="end", size=11)


def _row(row: Row, peer: str, y: int) -> Iterator[str]:
    found = row.against(row.reference)
    ours, reference = row.per_call_s(OURS).value, row.per_call_s(row.reference).value
    assert row.bar is not None, "a panel leaves out rows without one"
    allowed = 1 + row.bar.allowance(reference) / reference
    colour = COLOURS[row.verdict or "unclear"]
    yield f'<rect x="{LEFT}" y="{y - 9}" width="{_x(allowed) - LEFT:.1f}" height="18" fill="{BAND}"/>'
    yield line(_x(1), y - 12, _x(1), y + 12, INK)
    yield text(24, y + 4, row.label)
    if row.reference != "plain":
        plain = row.per_call_s("plain").value / reference
        tip = f"{row.label}: {peer} by its own call {seconds(plain * reference)}, in a thread {seconds(reference)}"
        yield _dot(plain, y, "#ffffff", FAINT, tip)
    yield line(_x(found.ratio.low), y, _x(found.ratio.high), y, colour, width=2.5)
    ratio = found.ratio
    yield _dot(ratio.value, y, colour, colour, f"{row.label}: {ratio.value:.2f}, {ratio.low:.2f} to {ratio.high:.2f}")
    yield text(RIGHT + 85, y + 4, signed(found.difference_s.value), colour=colour, anchor="end")
    yield text(WIDTH - 24, y + 4, seconds(ours), anchor="end")


def _heading(bars: str) -> Iterator[str]:
    yield text(24, 32, "What a call costs over the vendor's library alone", size=17, weight="600")
    yield text(24, 53, SUBTITLE, colour=FAINT)
    yield from _legend(76, bars)


def _legend(y: int, bars: str) -> Iterator[str]:
    yield f'<circle cx="30" cy="{y - 4}" r="4.5" fill="{WITHIN}"/>'
    yield line(20, y - 4, 40, y - 4, WITHIN, width=2.5)
    yield text(48, y, "Tallymark, 95 % interval")
    yield f'<circle cx="222" cy="{y - 4}" r="4" fill="#ffffff" stroke="{FAINT}" stroke-width="1.5"/>'
    yield text(234, y, "the library's own call, without a thread")
    yield f'<rect x="482" y="{y - 13}" width="22" height="16" fill="{BAND}"/>'
    yield text(511, y, f"within the bar: {bars}")
    for x, colour, word in ((694, WITHIN, "within"), (758, UNCLEAR, "unclear"), (828, OVER, "over")):
        yield f'<circle cx="{x}" cy="{y - 4}" r="4.5" fill="{colour}"/>'
        yield text(x + 9, y, word, colour=colour)


def _footing(answer: Answer, height: int) -> Iterator[str]:
    machine, day = answer.machine, answer.began.date().isoformat()
    libraries = ", ".join(f"{name} {release}" for name, release in machine.libraries.items())
    where = f"{day}; {machine.cpu}, {machine.core_count} cores; {machine.kernel}; {machine.python}"
    yield text(24, height - 26, where, colour=FAINT, size=11)
    yield text(24, height - 11, f"{libraries}; {answer.method.round_count} interleaved rounds", colour=FAINT, size=11)


def _x(ratio: float) -> float:
    share = math.log(min(max(ratio, RATIO_MIN), RATIO_MAX) / RATIO_MIN) / math.log(RATIO_MAX / RATIO_MIN)
    return LEFT + share * (RIGHT - LEFT)


def _dot(ratio: float, y: int, fill: str, stroke: str, tip: str) -> str:
    x = _x(ratio)
    style = f'fill="{fill}" stroke="{stroke}" stroke-width="1.5"><title>{escape(tip)}</title>'
    if RATIO_MIN <= ratio <= RATIO_MAX:
        return f'<circle cx="{x:.1f}" cy="{y}" r="4" {style}</circle>'
    tail = -9 if ratio > RATIO_MAX else 9
    return f'<path d="M{x:.1f} {y} l{tail} -5 v10 z" {style}</path>'
