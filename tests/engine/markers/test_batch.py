"""Those who share a flush."""

import anyio
import pytest

from tallymark.engine.errors import FlushFailed
from tallymark.engine.markers.batch import MarkerBatch
from tests.support.loops import on_virtual_time


@on_virtual_time
async def test_a_batch_tells_all_who_wait_and_all_who_come_later_how_it_ended():
    batch = MarkerBatch()
    batch.add("x.parquet.marker.CREATE", 0.0)
    assert repr(batch) == "<MarkerBatch 1 markers>"
    batch.settle(FlushFailed("the disk is full"))
    assert repr(batch) == "<MarkerBatch 1 markers settled>"
    for _ in range(2):
        with pytest.raises(FlushFailed, match="the disk is full"):
            await batch.wait()


@on_virtual_time
async def test_a_batch_knows_how_long_ago_its_markers_were_asked_for():
    batch = MarkerBatch()
    for now in (3.0, 4.0, 8.0):
        batch.add(f"{now}.parquet.marker.CREATE", now)
    assert batch.mean_age_s(10.0) == 5.0
    late = MarkerBatch()
    for number in range(100_000):
        late.add(f"{number}.parquet.marker.CREATE", 3e7 + 0.1)
    assert late.mean_age_s(3e7 + 0.1) == 0.0


@on_virtual_time
async def test_a_durable_batch_lets_everybody_go():
    batch = MarkerBatch()
    ended = []

    async def wait() -> None:
        await batch.wait()
        ended.append(anyio.current_time())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.sleep(2)
        assert ended == []
        batch.settle()
    assert ended == [2.0]
