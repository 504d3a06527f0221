"""The engine as a whole: its block, its statistics, its log, and answers for every caller when it ends."""

import logging

import anyio
import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import Closed, FlushFailed, InvalidRequest, Overloaded
from tallymark.engine.markers import MarkerAnswer, open_marker_engine
from tallymark.engine.settings import MarkerSettings
from tests.engine.markers.recorded import FOLDER, HEAD, INSTANT, SEGMENTS, segment, stored
from tests.engine.markers.scene import Scene, marker_scene
from tests.support.faulty import FaultyBackend, lost_answer, refused, slow
from tests.support.loops import on_virtual_time


@on_virtual_time
async def test_a_directory_is_the_same_for_the_same_instant_costs_nothing_and_does_not_meet_another():
    async with marker_scene() as scene:
        other = scene.engine.directory("other")
        assert scene.engine.directory(INSTANT) is scene.directory is not other
        with pytest.raises(InvalidRequest):
            scene.engine.directory("../other")
        assert scene.storage.calls == []
        assert await scene.directory.create("x.parquet") == (MarkerAnswer.CREATED,)
        assert await other.create("x.parquet") == (MarkerAnswer.CREATED,)
        await scene.directory.delete()
        assert len(await other.names()) == 1


@on_virtual_time
async def test_statistics_tell_what_waits_and_what_was_done():
    settings = MarkerSettings(interval_s=0.25, queue_limit=3)
    async with marker_scene(slow("put_new", 0.5, SEGMENTS), settings=settings) as scene:
        scene.tasks.start_soon(scene.directory.create, "a")
        await anyio.sleep(0.125)
        scene.tasks.start_soon(scene.directory.create, "b", "c")
        await anyio.sleep(0.0625)
        with pytest.raises(Overloaded):
            await scene.directory.create("d")
        now = scene.statistics
        assert (now.waiting, now.inflight, now.durable, now.requests, now.refusals) == (2, 1, 0, 3, 1)
        assert now.put_s is None
        assert repr(scene.directory) == f"<MarkerDirectory {FOLDER} 2 waiting, 1 inflight, 0 durable>"
        await anyio.sleep(2)
        now = scene.statistics
        assert (now.waiting, now.inflight, now.durable, now.largest_batch) == (0, 0, 3, 2)
        assert (now.batches_flushed, now.batches_failed, now.puts, now.put_bytes) == (2, 0, 2, 3 * 16 + 2 * HEAD)
        assert (now.put_s, now.interval_s) == (0.5, 0.25)


@on_virtual_time
async def test_statistics_count_every_put_of_flushes_side_by_side_and_of_failed_ones():
    async with marker_scene(
        slow("put_new", 1.0, SEGMENTS),
        lost_answer("put_new", SEGMENTS, nth=1),
        refused("put_new", SEGMENTS, nth=3),
        interval_s=0,
    ) as scene:
        for name in "abc":
            scene.ask(name)
            await anyio.sleep(0.125)
        await anyio.sleep(8)
        assert scene.statistics.puts == len(scene.segment_puts) == 4
        assert (scene.statistics.batches_flushed, scene.statistics.batches_failed) == (2, 1)


@on_virtual_time
async def test_a_flush_that_a_closed_engine_has_refused_may_become_durable_and_no_directory_is_opened():
    async with marker_scene(slow("put_new", 0.0, SEGMENTS, after_s=0.5)) as scene:
        scene.ask("x.parquet")
        await anyio.sleep(0.25)
        scene.engine.close()
        await anyio.sleep(1)
        assert (scene.outcomes, scene.statistics.durable) == ([(0.25, Closed)], 1)
        with pytest.raises(Closed):
            scene.engine.directory("another")


@on_virtual_time
async def test_a_forgotten_instant_is_closed_and_its_markers_stay():
    storage = MemoryBackend()
    async with open_marker_engine(storage) as engine:
        directory = engine.directory(INSTANT)
        await directory.create("x.parquet")
        engine.forget(INSTANT)
        engine.forget(INSTANT)
        with pytest.raises(Closed):
            await directory.create("y.parquet")
        assert await engine.directory(INSTANT).create("x.parquet") == (MarkerAnswer.EXISTED,)
    assert len([path for path in await stored(storage) if "SERVER" in path]) == 2


def told(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, object]]:
    """The fields of each such event, as they were logged."""
    return [vars(record)["fields"] for record in caplog.records if getattr(record, "event", None) == event]


@on_virtual_time
async def test_a_failed_flush_is_told_and_reaches_each_requester_as_an_error_of_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusals = []

    async def request() -> None:
        with pytest.raises(FlushFailed) as caught:
            await scene.directory.create("a.parquet", "b.parquet")
        refusals.append(caught.value)

    async with marker_scene(refused("put_new", SEGMENTS), slow("put_new", 0.5, SEGMENTS)) as scene:
        scene.tasks.start_soon(request)
        scene.tasks.start_soon(request)
    assert refusals[0] is not refusals[1]
    (fields,) = told(caplog, "batch.failed")
    assert (fields["instant"], fields["markers"]) == (INSTANT, 2)
    assert isinstance(fields["reason"], FlushFailed)


@on_virtual_time
async def test_a_flush_that_its_engine_did_not_wait_for_is_no_failure_of_storage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    storage = FaultyBackend(MemoryBackend(), slow("put_new", 5.0, SEGMENTS))
    async with anyio.create_task_group() as tasks, open_marker_engine(storage) as engine:
        scene = Scene(storage, engine, engine.directory(INSTANT), tasks)
        scene.ask("a.parquet")
        await anyio.sleep(1)
        assert scene.statistics.inflight == 1
    assert scene.outcomes == [(1.0, Closed)]
    assert told(caplog, "batch.failed") == []


@on_virtual_time
async def test_a_full_queue_is_told_once_until_it_is_half_empty(caplog: pytest.LogCaptureFixture) -> None:
    async with marker_scene(queue_limit=2) as scene:
        for _ in range(3):
            with pytest.raises(Overloaded):
                await scene.directory.create("a.parquet", "b.parquet", "c.parquet")
        assert told(caplog, "queue.filled") == [{"waiting": 0, "inflight": 0, "limit": 2}]
        await scene.directory.create("a.parquet")
        with pytest.raises(Overloaded):
            await scene.directory.create("b.parquet", "c.parquet", "d.parquet")
    assert len(told(caplog, "queue.filled")) == 2


@on_virtual_time
async def test_what_a_service_finds_is_told_with_the_time_it_took(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    storage = FaultyBackend(MemoryBackend())
    async with open_marker_engine(storage) as engine:
        await engine.directory(INSTANT).create("a.parquet", "b.parquet")
    storage.add(slow("get", 0.5))
    async with open_marker_engine(storage) as engine:
        await engine.directory(INSTANT).names()
        await engine.directory(INSTANT).names()
    empty, found = told(caplog, "markers.loaded")
    assert empty == {"instant": INSTANT, "markers": 0, "objects": 0, "seconds": 0.0}
    assert found == {"instant": INSTANT, "markers": 2, "objects": 2, "seconds": 0.5}


@on_virtual_time
async def test_a_flush_with_its_puts_and_a_merge_are_told_to_who_debugs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    settings = MarkerSettings(interval_s=0, segment_count_max=1, merge_freed_min=1)
    async with marker_scene(lost_answer("put_new", SEGMENTS, nth=1), settings=settings) as scene:
        for number in range(10):
            await scene.directory.create(f"{number}.parquet")
            await anyio.sleep(1)
        statistics = scene.statistics
    size = HEAD + len("0.parquet.marker.CREATE\n")
    assert told(caplog, "batch.flushed")[0] == {"path": segment(0), "markers": 1, "bytes": size, "puts": 2}
    merged = [int(str(fields["count"])) for fields in told(caplog, "segments.merged")]
    assert sum(merged) == statistics.merged_segments > 0
