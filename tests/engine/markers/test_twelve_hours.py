"""Twelve hours of virtual time with a crash an hour: nothing grows.

Coarser than life, to be done in seconds: not 72 requests a second but one every two, for eight markers. That makes
1,800 flushes an hour; what up to 64 a second leave is measured with the plan alone (``test_merge_plan``).
"""

from dataclasses import dataclass

import anyio
import trio
import trio.testing

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.markers import MarkerDirectory, MarkerStatistics, open_marker_engine
from tests.engine.markers.recorded import SEGMENTS, stored
from tests.support.faulty import FaultyBackend, slow

HOURS = 12
REQUESTS = 1800
MARKERS = 8
LINE_BYTES = len("0123456/0123456-01.parquet.marker.CREATE\n")


@dataclass(frozen=True, slots=True)
class Hour:
    """What one life of a server looked like from outside."""

    objects_max: int
    found_by_successor: int
    statistics: MarkerStatistics


def test_in_twelve_hours_with_a_crash_an_hour_objects_bytes_puts_and_memory_stay_flat():
    hours = trio.run(_live_and_die, clock=trio.testing.MockClock(autojump_threshold=0))
    markers = REQUESTS * MARKERS
    for hour in hours:
        now = hour.statistics
        assert hour.found_by_successor == now.durable == markers
        assert now.put_bytes <= 4 * markers * LINE_BYTES
        assert now.puts <= 1.1 * now.batches_flushed
        assert hour.objects_max <= 20 + 15
    assert max(hour.statistics.puts for hour in hours) <= 1.01 * min(hour.statistics.puts for hour in hours)
    assert len({hour.objects_max for hour in hours}) == 1


async def _live_and_die() -> list[Hour]:
    storage = FaultyBackend(MemoryBackend(), slow("put_new", 0.03, SEGMENTS))
    hours = []
    for number in range(HOURS):
        instant = f"202601020304{number:05}"
        async with open_marker_engine(storage) as engine:
            directory = engine.directory(instant)
            objects_max = await _one_hour(directory, storage)
            statistics = engine.statistics()
        async with open_marker_engine(storage) as successor:
            directory = successor.directory(instant)
            hours.append(Hour(objects_max, len(await directory.names()), statistics))
            await directory.delete()
        assert await stored(storage.inner) == {}
        storage.calls.clear()
    return hours


async def _one_hour(directory: MarkerDirectory, storage: FaultyBackend) -> int:
    """The most objects that lay in the directory."""
    objects_max = 0
    for number in range(REQUESTS):
        await directory.create(*(f"{number:07}/{number:07}-{task:02}.parquet" for task in range(MARKERS)))
        await anyio.sleep(3600 / REQUESTS - 0.03)
        if number % 4 == 0:
            objects_max = max(objects_max, len([entry async for entry in storage.inner.list(".hoodie/.temp")]))
    return objects_max
