"""What an engine's log tells an operator."""

import logging

import anyio
import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import Closed, FlushFailed, Overloaded
from tallymark.engine.markers import open_marker_engine
from tallymark.engine.settings import MarkerSettings
from tests.engine.markers.recorded import INSTANT, SEGMENTS, segment
from tests.engine.markers.scene import marker_scene
from tests.engine.markers.test_directory import outcome_of
from tests.support.faulty import FaultyBackend, lost_answer, refused, slow
from tests.support.loops import on_virtual_time


def told(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, object]]:
    """The fields of each such event, as they were logged."""
    return [vars(record)["fields"] for record in caplog.records if getattr(record, "event", None) == event]


@on_virtual_time
async def test_a_batch_that_storage_does_not_take_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async with marker_scene(refused("put_new", SEGMENTS)) as scene:
        with pytest.raises(FlushFailed):
            await scene.directory.create("a.parquet", "b.parquet")
    (fields,) = told(caplog, "batch.failed")
    assert (fields["instant"], fields["markers"]) == (INSTANT, 2)
    assert isinstance(fields["reason"], FlushFailed)


@on_virtual_time
async def test_a_flush_that_its_engine_did_not_wait_for_is_no_failure_of_storage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    storage = FaultyBackend(MemoryBackend(), slow("put_new", 5.0, SEGMENTS))
    async with anyio.create_task_group() as tasks, open_marker_engine(storage) as engine:
        tasks.start_soon(outcome_of, engine.directory(INSTANT).create("a.parquet"), outcomes := [])
        await anyio.sleep(1)
        assert engine.statistics().inflight == 1
    assert outcomes == [(1.0, Closed)]
    assert told(caplog, "batch.failed") == []


@on_virtual_time
async def test_a_flush_is_told_with_its_puts_to_who_debugs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with marker_scene(lost_answer("put_new", SEGMENTS, nth=1)) as scene:
        await scene.directory.create("a.parquet")
    size = len("a.parquet.marker.CREATE\n")
    assert told(caplog, "batch.flushed") == [{"path": segment(0), "markers": 1, "bytes": size, "puts": 2}]


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
async def test_a_merge_is_told_to_who_debugs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    settings = MarkerSettings(interval_s=0, segment_count_max=1, merge_freed_min=1)
    async with marker_scene(settings=settings) as scene:
        for number in range(10):
            await scene.directory.create(f"{number}.parquet")
            await anyio.sleep(1)
        statistics = scene.statistics
    merged = [int(str(fields["count"])) for fields in told(caplog, "segments.merged")]
    assert sum(merged) == statistics.merged_segments > 0
