"""The directory of an instant that its server has just reserved: nothing is listed, and all that it puts is known."""

import anyio
import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.markers import open_marker_engine
from tallymark.engine.markers.segment import BATCHED_TYPE
from tallymark.engine.settings import MarkerSettings
from tests.engine.markers.recorded import FOLDER, INSTANT, SEGMENTS, segment, stored
from tests.support.faulty import FaultyBackend, lost_answer, lost_request, slow
from tests.support.loops import on_virtual_time

FEW = MarkerSettings(interval_s=0, segment_count_max=8, merge_freed_min=4)


@pytest.mark.parametrize(
    "faults",
    [
        [],
        [lost_answer("put_new", SEGMENTS, nth=3)],
        [lost_request("put_new", SEGMENTS, nth=3)],
        [lost_answer("put_new", f"{FOLDER}/SERVER*", nth=1)],
        [lost_answer("put_new", segment(9), nth=1)],
        [lost_request("delete", nth=1)],
        [slow("put_new", 3.0, segment(30), nth=1)],
    ],
    ids=["none", "answer", "request", "claim", "merge", "delete", "hedged"],
)
@on_virtual_time
async def test_a_new_directory_lists_nothing_and_knows_all_that_it_leaves(faults):
    storage = FaultyBackend(MemoryBackend(), *faults)
    await storage.put(f"{FOLDER}/MARKERS.type", BATCHED_TYPE)
    async with open_marker_engine(storage, FEW) as engine:
        directory = engine.directory(INSTANT, is_new=True)
        for number in range(40):
            await directory.create(f"{number}.parquet")
        await anyio.sleep(10)
        directory.seal()
        await directory.drained()
        assert len(await directory.names()) == 40
        assert storage.paths("list") == []
        assert set(await stored(storage.inner)) <= directory.objects
        assert engine.statistics().merges > 0
        assert len(directory.objects) <= len(await stored(storage.inner)) + 1, "what merges deleted is forgotten"


@on_virtual_time
async def test_a_copy_that_lands_after_its_segment_was_merged_away_is_known_still():
    """Its put was sent twice, the first copy being late."""
    storage = FaultyBackend(MemoryBackend(), lost_request("put_new", segment(2), nth=1))
    await storage.put(f"{FOLDER}/MARKERS.type", BATCHED_TYPE)
    async with open_marker_engine(storage, FEW) as engine:
        directory = engine.directory(INSTANT, is_new=True)
        for number in range(10):
            await directory.create(f"{number}.parquet")
        await anyio.sleep(10)
        assert segment(2) not in await stored(storage.inner)
        assert segment(1) not in directory.objects
        assert segment(2) in directory.objects
