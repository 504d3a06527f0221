"""Direct markers: one empty object each."""

import anyio
import anyio.lowlevel
import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import FlushFailed, InvalidRequest, Sealed
from tallymark.engine.markers import MarkerAnswer, open_marker_engine
from tallymark.engine.markers.direct import create_direct
from tallymark.engine.settings import MarkerSettings
from tests.engine.markers.recorded import DIRECT_MARKERS, FOLDER, INSTANT, stored
from tests.support.faulty import FaultyBackend, hanging, lost_answer, refused, slow
from tests.support.loops import on_virtual_time


async def open_instant() -> None:
    await anyio.lowlevel.checkpoint()


@on_virtual_time
async def test_direct_markers_are_one_empty_object_each_and_no_type_file():
    storage = MemoryBackend()
    async with open_marker_engine(storage, MarkerSettings(kind="direct")) as engine:
        answers = await engine.directory(INSTANT).create("p=1/x.parquet", "y.parquet")
        assert answers == (MarkerAnswer.CREATED,) * 2
        assert engine.statistics().puts == 2
    assert await stored(storage) == {
        f"{FOLDER}/p=1/x.parquet.marker.CREATE": b"",
        f"{FOLDER}/y.parquet.marker.CREATE": b"",
    }


@on_virtual_time
async def test_a_direct_marker_that_exists_already_is_no_refusal():
    storage = MemoryBackend()
    for _ in range(2):
        await create_direct(storage, INSTANT, ["x.parquet"], open_instant)
    assert list(await stored(storage)) == [f"{FOLDER}/x.parquet.marker.CREATE"]


@pytest.mark.parametrize("fault", [lost_answer("put_new", nth=1), hanging("put_new", nth=1, lands=True)])
@on_virtual_time
async def test_a_direct_marker_whose_answer_is_missing_is_put_again(fault):
    storage = FaultyBackend(MemoryBackend(), fault)
    await create_direct(storage, INSTANT, ["x.parquet"], open_instant)
    assert len(storage.paths("put_new")) == 2


@on_virtual_time
async def test_direct_markers_of_one_request_are_put_side_by_side_up_to_the_worker_count():
    storage = FaultyBackend(MemoryBackend(), slow("put_new", 1.0, DIRECT_MARKERS))
    settings = MarkerSettings(kind="direct", worker_count=2)
    await create_direct(storage, INSTANT, ["a", "b", "c"], open_instant, settings=settings)
    assert [call.started_s for call in storage.calls] == [0.0, 0.0, 1.0]


@on_virtual_time
async def test_one_direct_marker_that_fails_fails_the_request():
    storage = FaultyBackend(MemoryBackend(), refused("put_new", "*/b.*"))
    with pytest.raises(FlushFailed, match=r"b\.parquet"):
        await create_direct(storage, INSTANT, ["a.parquet", "b.parquet"], open_instant)


@on_virtual_time
async def test_a_direct_marker_that_comes_after_the_seal_is_refused_and_taken_back():
    storage = FaultyBackend(MemoryBackend())

    async def sealed() -> None:
        assert list(await stored(storage)) == [f"{FOLDER}/x.parquet.marker.CREATE"]
        raise Sealed("the job has read its markers")

    with pytest.raises(Sealed):
        await create_direct(storage, INSTANT, ["x.parquet"], sealed)
    assert await stored(storage) == {}


@on_virtual_time
async def test_a_name_that_leaves_the_table_is_refused_before_any_put():
    storage = FaultyBackend(MemoryBackend())
    with pytest.raises(InvalidRequest):
        await create_direct(storage, INSTANT, ["a.parquet", "../b.parquet"], open_instant)
    assert storage.calls == []
