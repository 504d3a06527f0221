"""An answer as one SVG: how long acks take, what a job writes, and the published table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tallymark.bench.markers.answer import AckRow, JobRow, LoadRows, MarkersAnswer
from tallymark.bench.markers.axis import HEAD, ROW, WIDTH, Decades, bar, colour_of
from tallymark.bench.markers.bytes_plot import BytesPanel
from tallymark.bench.report import seconds
from tallymark.bench.svg import FAINT, Panel, document, line, stacked, text

TOP, FOOT = 64, 50


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
    if answer.beside.paced:
        yield BytesPanel({(row.side, row.title): row.points for row in answer.beside.paced}, answer.beside.paced_load)
    elif points := _points(answer.beside.jobs):
        yield BytesPanel(points, f"{answer.effort.callers} callers, as fast as they are answered")
    if answer.published:
        yield _Jobs(answer.published, answer.far)


@dataclass(frozen=True, slots=True)
class _Acks:
    load: LoadRows
    where: str

    @property
    def height(self) -> int:
        return HEAD + ROW * len(self.load.rows)

    def drawn(self, top: int) -> Iterator[str]:
        rows = self.load.rows
        axis = Decades.around([value for row in rows for value in (row.acks.latency.p50_s, row.acks.latency.p999_s)])
        yield text(
            24, top + 25, f"Acks: {self.load.load}", weight="600", faint=f"{self.where}; from when they were due"
        )
        yield from axis.drawn(top + HEAD - 12, top + self.height - 6, [seconds(tick) for tick in axis.ticks()])
        yield text(WIDTH - 24, top + HEAD - 16, "mean / 99 %", colour=FAINT, anchor="end", size=11)
        for number, row in enumerate(rows):
            yield from self._row(row, axis, top + HEAD + ROW * number + 6)

    def _row(self, row: AckRow, axis: Decades, y: int) -> Iterator[str]:
        found, colour = row.acks.latency, colour_of(row.side)
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
            yield bar(row.acks.rate / most, y, colour_of(row.side), f"{row.title}: {row.acks.rate:,.0f} markers/s")
            yield text(WIDTH - 24, y + 4, f"{row.acks.rate:,.0f}", anchor="end", size=11.5)


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
        axis = Decades.around([value for row in self.jobs for value in (row.job.created_s, row.job.deleted_s)])
        yield text(24, top + 25, "A job's markers: created, and deleted (grey)", weight="600", faint=self.where)
        yield from axis.drawn(top + HEAD - 12, top + self.height - 4, [seconds(tick) for tick in axis.ticks()])
        yield text(WIDTH - 24, top + HEAD - 16, "objects", colour=FAINT, anchor="end", size=11)
        for number, row in enumerate(sorted(self.jobs, key=lambda row: row.job.acks.count)):
            y, job = top + HEAD + ROW * number + 6, row.job
            yield text(24, y + 4, f"{row.title}, {job.acks.count:,}", size=11.5)
            told = f"{row.title}: created in {seconds(job.created_s)}, deleted in {seconds(job.deleted_s)}"
            yield bar(axis.share(job.created_s), y - 4, colour_of(row.side), told, height=7)
            yield bar(axis.share(job.deleted_s), y + 4, FAINT, told, height=7)
            yield text(WIDTH - 24, y + 4, f"{job.left.objects:,}", anchor="end", size=11.5)


def _footing(answer: MarkersAnswer, height: int) -> Iterator[str]:
    machine = answer.machine
    busy = f"load before {machine.load:.1f}, after {answer.load_after:.1f}"
    where = f"{answer.began.date().isoformat()}; {machine.cpu}, {machine.core_count} cores; {busy}"
    libraries = ", ".join(f"{name} {release}" for name, release in machine.libraries.items())
    yield text(24, height - 26, where, colour=FAINT, size=11)
    yield text(24, height - 11, f"{machine.python}, {libraries}", colour=FAINT, size=11)
