"""Those who share a flush."""

import anyio
import pytest

from tallymark.engine.errors import FlushFailed
from tallymark.engine.markers.batch import MarkerBatch
from tests.support.loops import on_virtual_time


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
