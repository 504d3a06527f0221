"""An answer as one SVG: for each case on each place what a write of each side took.

Wall time and CPU are bars from zero, with every write as a tick.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tallymark.bench.answer import OURS
from tallymark.bench.report import seconds
from tallymark.bench.svg import FAINT, INK, document, line, stacked, text
from tallymark.bench.writes.answer import Reading, WriteAnswer, WriteRow, WriteSection, cpu, wall

WIDTH = 980
MIDDLES = (310, 650)
"""Where the bars of the two readings begin."""
SPAN = 200
"""The longest bar."""
ROW, HEAD, TOP, FOOT = 24, 64, 72, 50

OURS_COLOUR, OTHERS_COLOUR = "#1a7f4b", "#9aa3af"

READINGS: tuple[tuple[str, Reading], ...] = (("wall", wall), ("CPU", cpu))


def draw(answer: WriteAnswer) -> str:
    """A whole SVG document, on white."""
    panels = [_Panel(section) for section in answer.sections if section.rows]
    height = TOP + sum(panel.height for panel in panels) + FOOT
    parts = [text(24, 32, "What a whole write of a DataFrame takes", size=17, weight="600")]
    parts.append(text(24, 53, "Medians as bars, each write as a tick; beside them Tallymark's over it", colour=FAINT))
    parts += stacked(panels, top=TOP)
    parts += _footing(answer, height)
    return document(parts, width=WIDTH, height=height)


@dataclass(frozen=True, slots=True)
class _Panel:
    section: WriteSection

    @property
    def height(self) -> int:
        return HEAD + ROW * len(self.section.rows)

    def drawn(self, top: int) -> Iterator[str]:
        yield text(24, top + 25, f"{self.section.place}: {self.section.label}", weight="600", faint=self.section.where)
        for left, (name, reading) in zip(MIDDLES, READINGS, strict=True):
            yield text(left, top + 50, name, colour=FAINT, size=11)
            longest = max(reading(done) for row in self.section.rows for done in row.done)
            for number, row in enumerate(self.section.rows):
                yield from _bar(row, self.section.ours, reading, left, top + HEAD + ROW * number, SPAN / longest)
        for number, row in enumerate(self.section.rows):
            yield text(24, top + HEAD + ROW * number + 11, row.title)


def _bar(row: WriteRow, ours: WriteRow | None, reading: Reading, left: int, top: int, scale: float) -> Iterator[str]:
    value = row.median(reading)
    colour = OURS_COLOUR if row.side == OURS else OTHERS_COLOUR
    yield f'<rect x="{left}" y="{top}" width="{value * scale:.1f}" height="14" fill="{colour}"/>'
    for done in row.done:
        yield line(left + reading(done) * scale, top + 1, left + reading(done) * scale, top + 13, INK)
    ratio = f" ({row.ratio(ours, reading).value:.2f})" if ours is not None and row.side != OURS else ""
    yield text(left + SPAN + 8, top + 11, f"{seconds(value)}{ratio}", size=11)


def _footing(answer: WriteAnswer, height: int) -> Iterator[str]:
    machine, method = answer.machine, answer.method
    where = (
        f"{answer.began.date().isoformat()}; {machine.cpu}, {machine.core_count} cores; load before {machine.load:.1f}"
    )
    libraries = ", ".join(f"{name} {release}" for name, release in machine.libraries.items())
    yield text(24, height - 26, where, colour=FAINT, size=11)
    how = f"{libraries}; {method.rounds} interleaved rounds, scale {method.scale:g}, codec {method.codec}"
    yield text(24, height - 11, how, colour=FAINT, size=11)
