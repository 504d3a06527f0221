"""Markers in Hudi's own protocol, on Hudi's timeline server and on ``tallymark serve``.

Both sides get the same requests from the same program, in blocks that alternate: each block is an instant, from its
first marker to its last. Puts and bytes are those of the files in the folder of markers. As a check there are the bytes
that the system counts for the process: of Hudi's server less its answers, and with its log and its checksum files.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from threading import Event
from typing import Protocol, cast

from tallymark.bench.load import Load, Seen, Target, run_load
from tallymark.bench.markers.file_writes import file_writes
from tallymark.bench.markers.sides import Counts, HudiSide, Left, OpenSide, Side, counts_of
from tallymark.bench.markers.taking import Taken, less, new_instant, open_sides
from tallymark.bench.markers.targets import MARKER_BYTES, HudiServer, name_of
from tallymark.bench.method import rotated
from tallymark.bench.paired import Estimate, estimate
from tallymark.bench.peers.hudi_markers import delete_markers, list_markers
from tallymark.bench.results import Chart, Table, column, micros, number, seconds, size
from tallymark.bench.serve_process import ServeProcess, serve_process
from tallymark.bench.stores import MarkerStore
from tallymark.engine.markers.segment import is_segment, marker_folder

BYTES_BAR = 10.0
"""Times fewer bytes than Hudi's server for the markers of the job at a pace."""

SETTLED_S, SETTLE_TIMEOUT_S, POLL_S = 1.0, 60.0, 0.1
"""Merges of ``tallymark serve`` have ended once the folder has not changed for this long."""

_PROPERTIES = "hoodie.table.version=9\nhoodie.timeline.layout.version=2\nhoodie.timeline.path=timeline\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSide:
    """``tallymark serve`` on a folder that is as a table of Hudi while an instant is in flight."""

    name: str = "serve"
    title: str = "tallymark serve"
    has_jobs: bool = True
    store: MarkerStore
    logs: Path

    @contextmanager
    def opened(self) -> Iterator["OpenServe"]:
        table = Path(self.store.url)
        (table / ".hoodie/timeline").mkdir(parents=True)
        (table / ".hoodie/hoodie.properties").write_text(_PROPERTIES)
        with serve_process(str(table), self.store.options, self.logs / self.name) as server:
            yield OpenServe(table, server)


@dataclass(frozen=True, slots=True)
class OpenServe:
    table: Path
    server: ServeProcess

    @property
    def port(self) -> int:
        return self.server.hudi_port

    def folder(self, instant: str) -> Path:
        return self.table / marker_folder(instant)

    def target(self, instant: str) -> Target:
        """Make the instant inflight first, as Hudi does before its tasks start."""
        for state in ("commit.requested", "inflight"):
            (self.table / f".hoodie/timeline/{instant}.{state}").write_bytes(b"{}")
        where = {"host": "127.0.0.1", "port": self.port, "folder": str(self.folder(instant))}
        return {"open": name_of(HudiServer), "instant": instant, **where}

    def counts(self) -> Counts:
        return counts_of(self.server.pid)

    def stored(self, counts: Counts, _seen: Seen) -> Counts:
        """Return them as they are: what is sent to a socket by send(2), as Python does, is not counted as written."""
        return counts

    def settle(self, instant: str) -> Left:
        """Wait until merges have ended. Raises TimeoutError."""
        began = since = time.monotonic()
        last = self._state(instant)
        while time.monotonic() < since + SETTLED_S:
            Event().wait(POLL_S)
            if (now := self._state(instant)) != last:
                last, since = now, time.monotonic()
            if time.monotonic() > began + SETTLE_TIMEOUT_S:
                raise TimeoutError(f"tallymark serve still changes {self.folder(instant)}")
        return len(last), len([name for name in last if is_segment(name)])

    def delete(self, instant: str) -> float:
        started = time.perf_counter()
        delete_markers(self.port, self.folder(instant))
        return time.perf_counter() - started

    def _state(self, instant: str) -> frozenset[str]:
        return frozenset(path.name for path in self.folder(instant).iterdir())


class HudiOpen(OpenSide, Protocol):
    """A side that speaks Hudi's protocol."""

    @property
    def port(self) -> int: ...

    def folder(self, instant: str) -> Path: ...


@dataclass(frozen=True, slots=True)
class Block:
    """One instant of one side."""

    taken: Taken
    puts: int
    file_bytes: int
    listed: int
    objects: int
    deleted_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow:
    """Means per block; acks are those of all blocks."""

    side: str
    title: str = column("")
    load: str
    markers: float = column("markers", number)
    listed: float = column("listed", number)
    mean_s: float = column("mean ack", seconds)
    p50_s: float = column("median", seconds)
    p99_s: float = column("99 %", seconds)
    rate: float = column("markers/s", number)
    puts: float = column("puts", number)
    file_bytes: float = column("bytes", size)
    amplification: float = column("per byte")
    sent_bytes: float = column("by its process", size)
    cpu_us: float = column("CPU/marker", micros)
    objects: float = column("objects left", number)
    deleted_s: float = column("deleted", seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioRow:
    """Hudi's server over ours, within pairs of blocks; above 1 is in our favour."""

    load: str = column("requested by")
    what: str = column("what")
    times: Estimate = column("times")
    bar: float | None = column("bar", default=None)
    is_kept: bool | None = column("kept", default=None)


@dataclass(frozen=True, slots=True)
class Requests:
    """All blocks of one load, by side."""

    load: Load
    blocks: dict[str, list[Block]] = field(default_factory=dict)

    def add(self, name: str, block: Block) -> None:
        self.blocks.setdefault(name, []).append(block)

    def row(self, side: Side) -> RequestRow:
        blocks = self.blocks[side.name]
        taken = blocks[0].taken
        for block in blocks[1:]:
            taken += block.taken
        seen, cpu_us = taken.seen, taken.cpu_us
        assert cpu_us is not None
        return RequestRow(
            side=side.name,
            title=side.title,
            load=title_of(self.load),
            markers=seen.answered / len(blocks),
            listed=fmean(block.listed for block in blocks),
            mean_s=seen.mean_s,
            p50_s=seen.latency.p50_s,
            p99_s=seen.latency.p99_s,
            rate=seen.rate,
            puts=fmean(block.puts for block in blocks),
            sent_bytes=(taken.counts["sent_bytes"] or 0) / len(blocks),
            amplification=sum(block.file_bytes for block in blocks) / (seen.answered * MARKER_BYTES),
            file_bytes=fmean(block.file_bytes for block in blocks),
            cpu_us=cpu_us,
            objects=fmean(block.objects for block in blocks),
            deleted_s=median(block.deleted_s for block in blocks),
        )

    def ratios(self, ours: str, other: str, bar: float | None) -> Iterator[RatioRow]:
        pairs = list(zip(self.blocks[ours], self.blocks[other], strict=True))

        def row(what: str, of: Callable[[Block], float], bar: float | None = None) -> RatioRow:
            times = estimate([of(theirs) / of(mine) for mine, theirs in pairs])
            is_kept = None if bar is None else times.value >= bar
            return RatioRow(load=title_of(self.load), what=what, times=times, bar=bar, is_kept=is_kept)

        yield row("bytes, times fewer", lambda block: block.file_bytes / block.taken.seen.answered, bar)
        yield row("puts, times fewer", lambda block: block.puts / block.taken.seen.answered)
        yield row("mean ack, times lower", lambda block: block.taken.seen.mean_s)
        yield row("99 % of acks, times lower", lambda block: block.taken.seen.latency.p99_s)
        yield row("CPU per marker, times lower", lambda block: block.taken.cpu_us or 0)


def title_of(load: Load) -> str:
    how = "as fast as they are answered" if load.rate is None else f"{load.rate:,.0f} per second"
    return f"{load.connections} callers, {how}"


def request_tables(
    store: MarkerStore, loads: Sequence[Load], rounds: int, logs: Path, progress: Callable[[str], None]
) -> Iterator[Table]:
    """Measure the loads on both sides; the first load has the bar."""
    title = "markers by Hudi's protocol"
    if store.folder is None:
        yield Table(title=title, rows=[], absent={"Hudi": "its server creates markers in folders of this machine only"})
        return
    sides: list[Side] = [
        ServeSide(store=store, logs=logs),
        HudiSide(folder=store.folder / "hudi", logs=logs),
    ]
    absent: dict[str, str] = {}
    taken = [Requests(load) for load in loads]
    with ExitStack() as stack:
        progress("markers: starting both services for Hudi")
        warm_up = Load(connections=loads[0].connections, seconds=3.0)
        opened = list(open_sides(sides, warm_up, logs, stack, absent))
        for requests in taken:
            for turn in range(rounds):
                for each in rotated(opened, turn) if opened else ():
                    progress(f"markers: {requests.load}: round {turn + 1} of {rounds}: {each.side.title}")
                    requests.add(each.side.name, block(cast("HudiOpen", each.open), requests.load, logs))
    chart = Chart(values=("file_bytes",), axis="bytes", is_log=True)
    for place, requests in enumerate(taken):
        rows = [requests.row(each.side) for each in opened]
        heading = f"{title}: {title_of(requests.load)}, {store.where}, per block of {rounds}"
        yield Table(title=heading, rows=rows, charts=(chart,), absent={} if place else absent)
    if len(opened) == len(sides):
        ratios = [
            row
            for place, requests in enumerate(taken)
            for row in requests.ratios("serve", "hudi", None if place else BYTES_BAR)
        ]
        yield Table(title="Hudi's server over tallymark serve, within pairs of blocks", rows=ratios)


def block(side: HudiOpen, load: Load, logs: Path) -> Block:
    """Create all markers of an instant, wait until merges have ended, list them and delete them."""
    name = new_instant()
    target, before = side.target(name), side.counts()
    folder = side.folder(name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with file_writes(folder.parent) as writes:
        seen = run_load(target, load, logs)
        objects, _ = side.settle(name)
        counts = side.stored(less(side.counts(), before), seen)
    listed = len(set(list_markers(side.port, folder)))
    return Block(Taken(seen, counts), writes.count, writes.bytes, listed, objects, side.delete(name))


def loads_of(markers: int, *, few: int, many: int, rate: float) -> tuple[Load, Load]:
    """Return the load at a pace, whose number of markers is random (Poisson), and the load flat out."""
    return Load(connections=few, rate=rate, seconds=markers / rate), Load(connections=many, count=markers)
