"""How long a service that comes after a crashed one takes to know its markers, and what keeping them takes.

A service marks files on a store in memory and is gone; another one reads what it has left. A request takes as long as
told. ``python -m tallymark.bench.markers.recovery`` measures 1,000, 165,000 and 1,000,000 markers.
"""

import gc
import statistics
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import anyio
import click

from tallymark.backends.concurrently import concurrently
from tallymark.bench.markers.delayed import DelayedMemory
from tallymark.cli.page import console, print_table
from tallymark.engine.markers.engine import open_marker_engine
from tallymark.engine.markers.loading import LoadedMarkers, load_markers
from tallymark.engine.markers.segment import is_segment, marker_folder
from tallymark.engine.settings import MarkerSettings
from tallymark.engine.tasks.file_name import new_file_name

COUNTS = (1_000, 165_000, 1_000_000)
BATCH = 50
"""Markers of one flush: those of 10,000 a second at the pace of a put of 20 ms."""

INSTANT = "20260101000000000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Times are medians over the rounds."""

    markers: int
    segments: int
    """That hold them: as many as the service has left, merges included."""
    bytes: int
    """Of these segments."""
    request_s: float
    seconds: float
    """From the first request for the instant until all markers are known."""
    reading_s: float
    """Of a program that lists and gets the same objects in the same way, and looks at nothing."""
    cpu_s: float
    """Of the recovery, reading included."""
    memory_bytes: float
    """Kept for each marker, its name included."""
    peak_bytes: float
    """Of memory for each marker, at most, while they are read."""

    @property
    def beyond_s(self) -> float:
        """What it takes beside reading the bytes."""
        return self.seconds - self.reading_s


def measure_recovery(
    count: int, *, request_s: float = 0.03, rounds: int = 5, settings: MarkerSettings | None = None
) -> Recovery:
    """Blocking. The store holds the bytes of all markers in memory, some 108 for each."""
    return anyio.run(
        partial(_measure, count, request_s=request_s, rounds=rounds, settings=settings or MarkerSettings()),
        backend="trio",
    )


async def _measure(count: int, *, request_s: float, rounds: int, settings: MarkerSettings) -> Recovery:
    store = DelayedMemory(0.0)
    await _mark(store, count, settings)
    sizes = [entry.size async for entry in store.list(marker_folder(INSTANT)) if is_segment(_name(entry.path))]
    store.read_s = request_s
    seconds, cpu_s, reading_s = [], [], []
    for _ in range(rounds):
        reading_s.append((await _timed(store, settings, only_read=True))[0])
        took_s, spent_s = await _timed(store, settings, only_read=False)
        seconds.append(took_s)
        cpu_s.append(spent_s)
    kept, peak = await _memory(store, settings)
    return Recovery(
        markers=count,
        segments=len(sizes),
        bytes=sum(sizes),
        request_s=request_s,
        seconds=statistics.median(seconds),
        reading_s=statistics.median(reading_s),
        cpu_s=statistics.median(cpu_s),
        memory_bytes=kept / count,
        peak_bytes=peak / count,
    )


async def _mark(store: DelayedMemory, count: int, settings: MarkerSettings) -> None:
    """As tasks ask a service, which then dies."""
    paths = _paths(count)
    async with open_marker_engine(store, settings) as engine:
        directory = engine.directory(INSTANT)
        for done in range(0, count, BATCH):
            await directory.create(*(next(paths) for _ in range(min(BATCH, count - done))))


def _paths(count: int) -> Iterator[str]:
    for number in range(count):
        partition = f"year={2000 + number % 25}/month={1 + number // 25 % 12}"
        yield f"{partition}/{new_file_name(instant=INSTANT, task=number, stage=0, attempt=0)}"


async def _timed(store: DelayedMemory, settings: MarkerSettings, *, only_read: bool) -> tuple[float, float]:
    """Wall clock and CPU, in seconds."""
    gc.collect()
    began, began_cpu = time.perf_counter(), time.process_time()
    if only_read:
        await _read(store, settings)
    else:
        await _load(store, settings)
    return time.perf_counter() - began, time.process_time() - began_cpu


async def _load(store: DelayedMemory, settings: MarkerSettings) -> LoadedMarkers:
    return await load_markers(store, marker_folder(INSTANT), concurrency=settings.load_concurrency)


async def _read(store: DelayedMemory, settings: MarkerSettings) -> None:
    """The same requests: two listings, and each segment once."""
    for _ in range(2):
        paths = [entry.path async for entry in store.list(marker_folder(INSTANT))]
    segments = [path for path in paths if is_segment(_name(path))]
    await concurrently(store.get, segments, limit=settings.load_concurrency)


async def _memory(store: DelayedMemory, settings: MarkerSettings) -> tuple[int, int]:
    """Bytes that are kept once all is read, and at most meanwhile."""
    gc.collect()
    tracemalloc.start()
    try:
        loaded = await _load(store, settings)
        gc.collect()
        kept, peak = tracemalloc.get_traced_memory()
        assert loaded.lines
        return kept, peak
    finally:
        tracemalloc.stop()


def _name(path: str) -> str:
    return path.rpartition("/")[2]


@click.command()
@click.argument("counts", type=click.IntRange(min=1), nargs=-1)
@click.option("--latency-ms", type=click.FloatRange(min=0), default=30.0, show_default=True, help="Of each request.")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
def main(counts: tuple[int, ...], latency_ms: float, rounds: int) -> None:
    """How long does a service take to know the COUNTS markers that a crashed one has left?"""
    headings = ["markers", "segments", "bytes", "recovery", "of it reading", "beyond", "CPU", "kept", "peak"]
    found = [measure_recovery(count, request_s=latency_ms / 1000, rounds=rounds) for count in counts or COUNTS]
    print_table(console(), headings, map(_row, found), numbers=range(len(headings)))


def _row(found: Recovery) -> list[str]:
    times = [found.seconds, found.reading_s, found.beyond_s, found.cpu_s]
    return [
        f"{found.markers:,}",
        f"{found.segments:,}",
        f"{found.bytes:,}",
        *(f"{seconds:.3f} s" for seconds in times),
        f"{found.memory_bytes:.0f} B a marker",
        f"{found.peak_bytes:.0f} B a marker",
    ]


if __name__ == "__main__":
    main(prog_name="python -m tallymark.bench.markers.recovery")
