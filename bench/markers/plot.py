"""An answer as one SVG: how long acks take, what a job writes, and the published table."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tallymark.bench.markers.answer import AckRow, JobRow, LoadRows, MarkersAnswer, is_hudi
from tallymark.bench.markers.names import MARKER_BYTES
from tallymark.bench.report import seconds
from tallymark.bench.svg import FAINT, GRID, INK, Panel, document, line, stacked, text

WIDTH = 900
LEFT, RIGHT = 250, 740
"""Where an axis begins and ends; titles stand before it, figures after it."""
ROW, HEAD, TOP, FOOT = 24, 64, 64, 50
CHART = 230
"""The height of the chart of bytes."""

S_MIN, S_MAX = 1e-3, 1.0
"""The axis of acks; it is longer where they are, by whole powers of ten."""

OURS_COLOUR, DIRECT_COLOUR, HUDI_COLOUR = "#1a7f4b", "#3b6fb6", "#7b8492"


def draw(answer: MarkersAnswer) -> str:
    """A whole SVG document, on white."""
    panels = list(_panels(answer))
    height = TOP + sum(panel.height for panel in panels) + FOOT
    parts = [
        text(
            24, 32, "How long a marker takes until it is durable, and what a job writes for them", size=17, weight="600"
        ),
        *stacked(panels, top=TOP - 12),
        *_footing(answer, height),
    ]
    return document(parts, width=WIDTH, height=height)


def _panels(answer: MarkersAnswer) -> Iterator[Panel]:
    for load in answer.beside.loads:
        if load.rows:
            yield _Acks(load, answer.where) if load.is_open else _Rates(load, answer.where)
    if answer.beside.jobs:
        yield _Bytes(answer.beside.jobs)
    if answer.published:
        yield _Jobs(answer.published, answer.far)


@dataclass(frozen=True, slots=True)
class _Axis:
    """Logarithmic, by whole powers of ten."""

    low: int
    high: int

    @classmethod
    def around(cls, values: Sequence[float]) -> "_Axis":
        low = math.floor(math.log10(min(values)))
        return cls(low, max(low + 1, math.ceil(math.log10(max(values)))))

    def share(self, value: float) -> float:
        return min(max((math.log10(value) - self.low) / (self.high - self.low), 0.0), 1.0)

    def x(self, value: float) -> float:
        return LEFT + self.share(value) * (RIGHT - LEFT)

    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


@dataclass(frozen=True, slots=True)
class _Acks:
    load: LoadRows
    where: str

    @property
    def height(self) -> int:
        return HEAD + ROW * len(self.load.rows)

    def drawn(self, top: int) -> Iterator[str]:
        rows = self.load.rows
        axis = _Axis.around([value for row in rows for value in (row.acks.latency.p50_s, row.acks.latency.p999_s)])
        yield text(
            24, top + 25, f"Acks: {self.load.load}", weight="600", faint=f"{self.where}; from when they were due"
        )
        yield from _vertical(axis, top + HEAD - 12, top + self.height - 6, [seconds(tick) for tick in axis.ticks()])
        yield text(WIDTH - 24, top + HEAD - 16, "mean / 99 %", colour=FAINT, anchor="end", size=11)
        for number, row in enumerate(rows):
            yield from self._row(row, axis, top + HEAD + ROW * number + 6)

    def _row(self, row: AckRow, axis: _Axis, y: int) -> Iterator[str]:
        found, colour = row.acks.latency, _colour(row.side)
        yield text(24, y + 4, row.title, size=11.5)
        yield line(axis.x(found.p50_s), y, axis.x(found.p99_s), y, colour, width=3)
        yield line(axis.x(found.p99_s), y, axis.x(found.p999_s), y, colour, width=1)
        for value in (found.p99_s, found.p999_s):
            yield line(axis.x(value), y - 5, axis.x(value), y + 5, colour, width=1.5)
        words = ", ".join(
            f"{share} {seconds(value)}"
            for share, value in (("median", found.p50_s), ("99 %", found.p99_s), ("99.9 %", found.p999_s))
        )
        yield (
            f'<circle cx="{axis.x(found.p50_s):.1f}" cy="{y}" r="4" fill="{colour}">'
            f"<title>{escape(f'{row.title}: {words}')}</title></circle>"
        )
        yield text(WIDTH - 24, y + 4, f"{seconds(row.acks.mean_s)} / {seconds(found.p99_s)}", anchor="end", size=11.5)


@dataclass(frozen=True, slots=True)
class _Rates:
    load: LoadRows
    where: str

    @property
    def height(self) -> int:
        return HEAD - 14 + ROW * len(self.load.rows)

    def drawn(self, top: int) -> Iterator[str]:
        most = max(row.acks.rate for row in self.load.rows)
        yield text(24, top + 25, f"Markers a second: {self.load.load}", weight="600", faint=self.where)
        for number, row in enumerate(self.load.rows):
            y = top + HEAD - 14 + ROW * number + 6
            yield text(24, y + 4, row.title, size=11.5)
            yield _bar(row.acks.rate / most, y, _colour(row.side), f"{row.title}: {row.acks.rate:,.0f} markers/s")
            yield text(WIDTH - 24, y + 4, f"{row.acks.rate:,.0f}", anchor="end", size=11.5)


@dataclass(frozen=True, slots=True)
class _Bytes:
    """Of jobs, against their markers."""

    jobs: tuple[JobRow, ...]

    height = CHART

    def drawn(self, top: int) -> Iterator[str]:
        points = _points(self.jobs)
        payload = [(job.job.acks.count, job.job.acks.payload_bytes) for job in self.jobs]
        counts, sizes = (
            _Axis.around([count for count, _ in payload]),
            _Axis.around([size for line_points in (*points.values(), payload) for _, size in line_points]),
        )
        yield text(
            24, top + 25, "Bytes written against markers of a job", weight="600", faint=f"{MARKER_BYTES} bytes each"
        )
        bottom, upper = top + CHART - 34, top + 44

        def y(size: float) -> float:
            return bottom - sizes.share(size) * (bottom - upper)

        yield from _vertical(counts, upper, bottom, [f"{tick:,.0f}" for tick in counts.ticks()], below=True)
        for tick in sizes.ticks():
            yield line(LEFT, y(tick), RIGHT, y(tick), GRID)
            yield text(LEFT - 8, round(y(tick)) + 4, _size(tick), colour=FAINT, anchor="end", size=11)
        yield _path(
            [(counts.x(count), y(size)) for count, size in sorted(set(payload))],
            INK,
            "the markers themselves",
            dash="3 3",
        )
        yield text(RIGHT + 6, round(y(max(size for _, size in payload))) + 4, "the markers", colour=INK, size=11)
        for (side, title), found in points.items():
            yield _path([(counts.x(count), y(size)) for count, size in found], _colour(side), title)
            yield text(
                RIGHT + 6, round(y(found[-1][1])) + 4, title.split(",", 1)[1].strip(), colour=_colour(side), size=11
            )


def _points(jobs: Sequence[JobRow]) -> dict[tuple[str, str], list[tuple[int, int]]]:
    found: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for row in jobs:
        if row.job.acks.sent_bytes:
            found.setdefault((row.side, row.title), []).append((row.job.acks.count, row.job.acks.sent_bytes))
    return found


@dataclass(frozen=True, slots=True)
class _Jobs:
    """The published table: how long markers take to come and to go, and what they leave."""

    jobs: tuple[JobRow, ...]
    where: str

    @property
    def height(self) -> int:
        return HEAD + ROW * len(self.jobs)

    def drawn(self, top: int) -> Iterator[str]:
        axis = _Axis.around([value for row in self.jobs for value in (row.job.created_s, row.job.deleted_s)])
        yield text(24, top + 25, "A job's markers: created, and deleted", weight="600", faint=self.where)
        yield from _vertical(axis, top + HEAD - 12, top + self.height - 4, [seconds(tick) for tick in axis.ticks()])
        yield text(WIDTH - 24, top + HEAD - 16, "objects", colour=FAINT, anchor="end", size=11)
        for number, row in enumerate(sorted(self.jobs, key=lambda row: row.job.acks.count)):
            y, job = top + HEAD + ROW * number + 6, row.job
            yield text(24, y + 4, f"{row.title}, {job.acks.count:,}", size=11.5)
            told = f"{row.title}: created in {seconds(job.created_s)}, deleted in {seconds(job.deleted_s)}"
            yield _bar(axis.share(job.created_s), y - 4, _colour(row.side), told, height=7)
            yield _bar(axis.share(job.deleted_s), y + 4, FAINT, told, height=7)
            yield text(WIDTH - 24, y + 4, f"{job.left.objects:,}", anchor="end", size=11.5)


def _vertical(axis: _Axis, top: int, bottom: int, words: Sequence[str], *, below: bool = False) -> Iterator[str]:
    for tick, word in zip(axis.ticks(), words, strict=True):
        yield line(axis.x(tick), top, axis.x(tick), bottom, GRID)
        yield text(axis.x(tick), bottom + 14 if below else top - 4, word, colour=FAINT, anchor="middle", size=11)


def _bar(share: float, y: int, colour: str, tip: str, *, height: int = 14) -> str:
    size = f'width="{max(share * (RIGHT - LEFT), 1):.1f}" height="{height}"'
    return f'<rect x="{LEFT}" y="{y - height / 2:.1f}" {size} fill="{colour}"><title>{escape(tip)}</title></rect>'


def _path(points: Sequence[tuple[float, float]], colour: str, tip: str, *, dash: str = "none") -> str:
    along = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    style = f'fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'
    return f'<polyline points="{along}" {style}><title>{escape(tip)}</title></polyline>'


def _size(value: float) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= scale:
            return f"{value / scale:g} {unit}"
    return f"{value:g} B"


def _colour(side: str) -> str:
    if is_hudi(side):
        return HUDI_COLOUR
    return DIRECT_COLOUR if side.endswith("direct") else OURS_COLOUR


def _footing(answer: MarkersAnswer, height: int) -> Iterator[str]:
    machine = answer.machine
    busy = f"load before {machine.load:.1f}, after {answer.load_after:.1f}"
    where = f"{answer.began.date().isoformat()}; {machine.cpu}, {machine.core_count} cores; {busy}"
    libraries = ", ".join(f"{name} {release}" for name, release in machine.libraries.items())
    yield text(24, height - 26, where, colour=FAINT, size=11)
    yield text(24, height - 11, f"{machine.python}, {libraries}", colour=FAINT, size=11)
