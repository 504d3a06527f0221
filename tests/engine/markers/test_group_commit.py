"""When flushes start, what they take, and that one in trouble holds nobody else up. Times are exact: virtual clock."""

from itertools import pairwise

import anyio
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import FlushFailed
from tallymark.engine.markers import open_marker_engine
from tallymark.engine.markers.batch import MarkerBatch
from tallymark.engine.settings import MarkerSettings
from tests.engine.markers.recorded import INSTANT, SEGMENTS
from tests.engine.markers.scene import marker_scene
from tests.support.examples import examples
from tests.support.faulty import FaultyBackend, hanging, slow
from tests.support.loops import on_virtual_time


def started_at(storage: FaultyBackend) -> list[float]:
    """When each put of a segment was begun."""
    return [call.started_s for call in storage.calls if call.verb == "put_new" and "/MARKERS" in call.paths[0]]


async def arrive(directory, times) -> dict[float, float]:
    """One request for a marker of its own at each time; returns when each was answered."""
    answered_at = {}

    async def request(at: float) -> None:
        await trio.sleep_until(at)
        await directory.create(f"{at}.parquet")
        answered_at[at] = trio.current_time()

    async with anyio.create_task_group() as tasks:
        for at in times:
            tasks.start_soon(request, at)
    return answered_at


@on_virtual_time
async def test_a_request_that_finds_the_directory_idle_is_flushed_at_once():
    async with marker_scene(slow("put_new", 0.5, SEGMENTS), interval_s=0.25) as scene:
        assert await arrive(scene.directory, [0, 3, 10]) == {0: 0.5, 3: 3.5, 10: 10.5}
    assert started_at(scene.storage) == [0, 3, 10]


@given(
    arrivals=st.lists(st.integers(0, 64).map(lambda n: n / 16), min_size=1, max_size=12, unique=True),
    interval_s=st.sampled_from([0.125, 0.25, 1.0]),
    put_s=st.sampled_from([0.0625, 0.5, 2.0]),
)
@settings(max_examples=examples(50), deadline=None)
def test_flushes_start_an_interval_apart_at_least_and_nobody_waits_longer_than_one_and_a_put(
    arrivals, interval_s, put_s
):
    @on_virtual_time
    async def check() -> None:
        storage = FaultyBackend(MemoryBackend(), slow("put_new", put_s, SEGMENTS))
        async with open_marker_engine(storage, MarkerSettings(interval_s=interval_s)) as engine:
            answered_at = await arrive(engine.directory(INSTANT), arrivals)
        starts = started_at(storage)
        assert all(later - earlier >= interval_s for earlier, later in pairwise(starts))
        assert all(end - begin <= interval_s + put_s for begin, end in answered_at.items())

    check()


@on_virtual_time
async def test_no_more_flushes_are_in_flight_than_workers():
    async with marker_scene(slow("put_new", 1.0, SEGMENTS), interval_s=0, worker_count=2) as scene:
        answered_at = await arrive(scene.directory, [0, 0.25, 0.5, 0.75])
    assert started_at(scene.storage) == [0, 0.25, 1.0]
    assert answered_at == {0: 1.0, 0.25: 1.25, 0.5: 2.0, 0.75: 2.0}


@on_virtual_time
async def test_a_stuck_put_does_not_hold_up_other_flushes():
    settings = MarkerSettings(interval_s=0.125, worker_count=2, flush_timeout_s=60.0, flush_retry_pause_s=0)
    async with marker_scene(
        hanging("put_new", SEGMENTS, nth=1), slow("put_new", 0.25, SEGMENTS), settings=settings
    ) as scene:
        answered_at = await arrive(scene.directory, [0, 1, 2, 3])
    assert answered_at == {0: 60.25, 1: 1.25, 2: 2.25, 3: 3.25}


@on_virtual_time
async def test_a_directory_in_trouble_does_not_hold_up_another():
    async with marker_scene(hanging("put_new", f"*/{INSTANT}/*"), worker_count=1) as scene:
        scene.tasks.start_soon(scene.directory.create, "x.parquet")
        assert await arrive(scene.engine.directory("other"), [1]) == {1: 1.0}
        scene.tasks.cancel_scope.cancel()


@on_virtual_time
async def test_an_error_that_no_store_may_raise_fails_its_requests_and_no_others():
    class Broken(MemoryBackend):
        async def put_new(self, path: str, data: bytes) -> None:
            if b"x.parquet" in data:
                raise ValueError("a defect")
            await super().put_new(path, data)

    async with open_marker_engine(Broken(), MarkerSettings(worker_count=1)) as engine:
        directory = engine.directory(INSTANT)
        with pytest.raises(FlushFailed, match=r"ValueError\('a defect'\)"):
            await directory.create("x.parquet")
        assert await arrive(directory, [1]) == {1: 1.0}
        assert engine.statistics().inflight == 0


@on_virtual_time
async def test_a_batch_tells_all_who_wait_and_all_who_come_later_how_it_ended():
    batch = MarkerBatch()
    batch.lines.append("x.parquet.marker.CREATE")
    assert repr(batch) == "<MarkerBatch 1 markers>"
    batch.settle(FlushFailed("the disk is full"))
    assert repr(batch) == "<MarkerBatch 1 markers settled>"
    for _ in range(2):
        with pytest.raises(FlushFailed, match="the disk is full"):
            await batch.wait()
