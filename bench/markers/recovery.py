"""How long a service takes to load the markers that a crashed one has left, and the memory that it keeps them in."""

import gc
import statistics
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import anyio

from tallymark.backends.concurrently import concurrently
from tallymark.bench.markers.memory import SlowMemory, constant
from tallymark.bench.results import Table, column, seconds, size
from tallymark.engine.markers.engine import open_marker_engine
from tallymark.engine.markers.loading import LoadedMarkers, load_markers
from tallymark.engine.markers.segment import is_segment, marker_folder
from tallymark.engine.settings import MarkerSettings
from tallymark.engine.tasks.file_name import new_file_name

COUNTS = (1_000, 165_000, 1_000_000)
BATCH = 50
"""Markers of one flush: 10,000 per second at the pace of a put of 20 ms."""

INSTANT = "20260101000000000"


BAR_S = 1.0
"""For 165,000 markers, beyond reading their bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Times are medians over the rounds."""

    markers: int = column("markers")
    segments: int = column("segments")
    bytes: int = column("bytes", size)
    request_s: float
    recovery_s: float = column("recovery", seconds)
    """From the first request for the instant until all markers are known."""
    reading_s: float = column("reading them", seconds)
    """Of a program that sends the same requests and ignores the contents."""
    beyond_s: float = column("beyond", seconds)
    cpu_s: float = column("CPU", seconds)
    memory_bytes: float = column("kept per marker", size)
    """The name included."""
    peak_bytes: float = column("peak per marker", size)


def table(counts: Sequence[int] = COUNTS, *, rounds: int = 5, request_s: float = 0.03) -> Table:
    title = (
        f"loading the markers of a crashed service, {seconds(request_s)} per request in memory; "
        f"bar: {seconds(BAR_S)} beyond reading for 165,000"
    )
    return Table(title=title, rows=[measure_recovery(each, rounds=rounds, request_s=request_s) for each in counts])


def measure_recovery(
    count: int, *, request_s: float = 0.03, rounds: int = 5, settings: MarkerSettings | None = None
) -> Recovery:
    """Blocks. The store keeps the bytes of all markers in memory, about 108 for each."""
    return anyio.run(
        partial(_measure, count, request_s=request_s, rounds=rounds, settings=settings or MarkerSettings()),
        backend="trio",
    )


async def _measure(count: int, *, request_s: float, rounds: int, settings: MarkerSettings) -> Recovery:
    store = SlowMemory(constant(0.0))
    await _mark(store, count, settings)
    sizes = [entry.size async for entry in store.list(marker_folder(INSTANT)) if is_segment(_name(entry.path))]
    store.read_s = request_s
    took, cpu_s, reading_s = [], [], []
    for _ in range(rounds):
        reading_s.append((await _timed(store, settings, only_read=True))[0])
        took_s, spent_s = await _timed(store, settings, only_read=False)
        took.append(took_s)
        cpu_s.append(spent_s)
    kept, peak = await _memory(store, settings)
    return Recovery(
        markers=count,
        segments=len(sizes),
        bytes=sum(sizes),
        request_s=request_s,
        recovery_s=statistics.median(took),
        reading_s=statistics.median(reading_s),
        beyond_s=statistics.median(took) - statistics.median(reading_s),
        cpu_s=statistics.median(cpu_s),
        memory_bytes=kept / count,
        peak_bytes=peak / count,
    )


async def _mark(store: SlowMemory, count: int, settings: MarkerSettings) -> None:
    """Create markers as tasks do by a service, which then ends."""
    paths = _paths(count)
    async with open_marker_engine(store, settings) as engine:
        directory = engine.directory(INSTANT)
        for done in range(0, count, BATCH):
            await directory.create(*(next(paths) for _ in range(min(BATCH, count - done))))


def _paths(count: int) -> Iterator[str]:
    for number in range(count):
        partition = f"year={2000 + number % 25}/month={1 + number // 25 % 12}"
        yield f"{partition}/{new_file_name(instant=INSTANT, task=number, stage=0, attempt=0)}"


async def _timed(store: SlowMemory, settings: MarkerSettings, *, only_read: bool) -> tuple[float, float]:
    """Return wall clock and CPU, in seconds."""
    gc.collect()
    began, began_cpu = time.perf_counter(), time.process_time()
    if only_read:
        await _read(store, settings)
    else:
        await _load(store, settings)
    return time.perf_counter() - began, time.process_time() - began_cpu


async def _load(store: SlowMemory, settings: MarkerSettings) -> LoadedMarkers:
    return await load_markers(store, marker_folder(INSTANT), concurrency=settings.load_concurrency)


async def _read(store: SlowMemory, settings: MarkerSettings) -> None:
    """Send the same requests: two listings, and each segment once."""
    for _ in range(2):
        paths = [entry.path async for entry in store.list(marker_folder(INSTANT))]
    segments = [path for path in paths if is_segment(_name(path))]
    await concurrently(store.get, segments, limit=settings.load_concurrency)


async def _memory(store: SlowMemory, settings: MarkerSettings) -> tuple[int, int]:
    """Return the bytes that are kept after loading, and the peak during it."""
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


if __name__ == "__main__":
    from tallymark.bench.command import print_table

    print_table(table())
