"""Merges in the background: their plan, their result, and what they never delete."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count

import anyio
import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.backends.contract import Backend
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.markers import MarkerDirectory, open_marker_engine
from tallymark.engine.markers.merge import MergePlan
from tallymark.engine.markers.segment import is_segment
from tallymark.engine.settings import MarkerSettings
from tests.engine.markers.recorded import FOLDER, HEAD, INSTANT, claim, segment, stored
from tests.engine.markers.scene import Scene, marker_scene
from tests.invariants import markers_in
from tests.support.examples import examples
from tests.support.faulty import Fault, FaultyBackend, hanging, lost_answer, lost_request, refused, slow
from tests.support.loops import on_virtual_time

FEW = MarkerSettings(interval_s=0, segment_count_max=8, merge_freed_min=4, hedge_quantile=None, flush_attempt_count=1)
"""The 9th segment is merged with all before it."""

FORGETFUL = replace(FEW, merge_memory_bytes=0)
"""It reads back all that it merges."""

FIRST_MERGE = segment(9)


async def ask_for(directory: MarkerDirectory, first: int, last: int) -> None:
    """One flush each, and the merge that it sets off has begun."""
    for number in range(first, last):
        await directory.create(f"{number}.parquet")
        await trio.testing.wait_all_tasks_blocked()


@asynccontextmanager
async def nine(*faults: Fault, settings: MarkerSettings = FEW) -> AsyncIterator[Scene]:
    """Nine segments, a second after the last of them: the first merge has begun."""
    async with marker_scene(*faults, settings=settings) as scene:
        await ask_for(scene.directory, 0, 9)
        await anyio.sleep(1)
        yield scene


async def numbers_in(backend: Backend) -> set[int]:
    """The numbers of all markers in storage."""
    return {int(name.removesuffix(".parquet.marker.CREATE")) for _, name in markers_in(await stored(backend))}


async def segments(backend: Backend) -> set[str]:
    return {path for path in await stored(backend) if is_segment(path.removeprefix(f"{FOLDER}/"))}


@pytest.mark.parametrize(("memory", "reads"), [(0, 9), (50, 8), (1 << 20, 0)])
@on_virtual_time
async def test_many_segments_become_one_and_then_those_go(memory, reads):
    async with nine(settings=replace(FEW, merge_memory_bytes=memory)) as scene:
        now = scene.statistics
        assert (now.segments, now.merges, now.merged_segments, now.merges_failed) == (1, 1, 9, 0)
        assert now.merge_bytes == HEAD + 9 * len("0.parquet.marker.CREATE\n")
        assert (now.puts, now.batches_flushed) == (10, 9)
    assert await segments(scene.storage.inner) == {segment(9)}
    assert await numbers_in(scene.storage.inner) == set(range(9))
    assert len([path for path in scene.storage.paths("get") if "/MARKERS" in path]) == reads


@on_virtual_time
async def test_an_ack_waits_for_no_merge_and_the_only_worker_is_left_to_the_flushes():
    settings = replace(FEW, worker_count=1)
    async with nine(slow("put_new", 20.0, FIRST_MERGE), slow("delete", 20.0), settings=settings) as scene:
        asked = trio.current_time()
        await ask_for(scene.directory, 9, 12)
        assert trio.current_time() == asked
        assert scene.statistics.merges == 0
        await anyio.sleep(100)
        assert scene.statistics.segments == 4
    assert await numbers_in(scene.storage) == set(range(12))


@pytest.mark.parametrize(
    "fault",
    [
        lost_request("put_new", FIRST_MERGE),
        lost_answer("put_new", FIRST_MERGE),
        refused("put_new", FIRST_MERGE),
        hanging("put_new", FIRST_MERGE),
        hanging("put_new", FIRST_MERGE, lands=True),
        lost_request("get", segment(3), nth=1),
        hanging("get", segment(3), nth=1),
    ],
)
@on_virtual_time
async def test_a_merge_that_fails_deletes_nothing_and_is_tried_again_later(fault):
    async with nine(fault, settings=FORGETFUL) as scene:
        await anyio.sleep(100)
        assert scene.statistics.merges_failed == 1
        assert scene.storage.paths("delete") == []
        assert {segment(number) for number in range(9)} <= await segments(scene.storage.inner)
        await ask_for(scene.directory, 9, 13)
        await anyio.sleep(100)
        assert scene.statistics.merges == 1
    assert await numbers_in(scene.storage.inner) == set(range(13))
    assert len(await segments(scene.storage.inner)) == 1


@on_virtual_time
async def test_the_bytes_of_failed_merges_count():
    storage = FaultyBackend(MemoryBackend())
    storage.add(lost_answer("put_new", lambda path: len(storage.paths("put_new")) % 3 == 0 and "MARKERS" in path))
    settings = MarkerSettings(interval_s=0, segment_count_max=2, merge_freed_min=1, flush_attempt_count=9)
    async with open_marker_engine(storage, settings) as engine:
        for number in range(100, 300):
            await engine.directory(INSTANT).create(f"{number}.parquet")
            await anyio.sleep(1)
        now = engine.statistics()
        assert now.merges_failed > 0
        assert now.merges > 0
        assert now.put_bytes <= 4 * 200 * (HEAD + len("100.parquet.marker.CREATE\n"))


@on_virtual_time
async def test_what_could_not_be_deleted_goes_with_the_next_merge():
    async with nine(lost_request("delete", nth=1)) as scene:
        assert len(await segments(scene.storage.inner)) == 10
        await ask_for(scene.directory, 9, 30)
        await anyio.sleep(1)
        assert scene.statistics.merges > 1
        assert len(await segments(scene.storage.inner)) == scene.statistics.segments <= 10
    assert await numbers_in(scene.storage.inner) == set(range(30))


@pytest.mark.parametrize("fault", [hanging("put_new", FIRST_MERGE, lands=True), hanging("delete", nth=1)])
@on_virtual_time
async def test_a_process_that_ends_before_the_deletion_waits_for_nothing_and_its_successor_merges_every_marker(fault):
    async with nine(fault) as scene:
        storage = scene.storage.inner
    assert trio.current_time() == 1
    await scene.directory.drained()
    assert len(await segments(storage)) == 10
    async with open_marker_engine(storage, FEW) as engine:
        directory = engine.directory(INSTANT)
        await ask_for(directory, 0, 9)
        assert engine.statistics().segments == 10
        assert len(await directory.names()) == 9
        await ask_for(directory, 9, 30)
        await anyio.sleep(1)
        assert len(await segments(storage)) == engine.statistics().segments <= 10
    assert await numbers_in(storage) == set(range(30))


@on_virtual_time
async def test_files_of_a_server_that_rewrites_its_own_are_never_merged():
    """Hudi's server claims no incarnation, and rewrites MARKERS0 to MARKERS19 as long as it lives."""
    storage = MemoryBackend()
    await storage.put(f"{FOLDER}/MARKERS0", b"0.parquet.marker.CREATE\n")
    for number in range(1, 20):
        await storage.put(segment(number), f"{number}.parquet.marker.CREATE\n".encode())
    await storage.put(claim(), b"")
    async with open_marker_engine(storage, FEW) as engine:
        await ask_for(engine.directory(INSTANT), 0, 60)
        await anyio.sleep(1)
        assert engine.statistics().merges > 0
    assert f"{FOLDER}/MARKERS0" in await segments(storage)
    assert not await segments(storage) & {segment(number) for number in range(1, 20)}
    assert await numbers_in(storage) == set(range(60))


@on_virtual_time
async def test_a_segment_that_was_damaged_is_not_merged_away():
    async with marker_scene(settings=FORGETFUL) as scene:
        await ask_for(scene.directory, 0, 4)
        damaged = sorted(await segments(scene.storage))[1]
        await scene.storage.put(damaged, b"torn.parq")
        await ask_for(scene.directory, 4, 60)
        await anyio.sleep(100)
        assert scene.statistics.merges > 0
        assert damaged in await segments(scene.storage)


@on_virtual_time
async def test_after_the_seal_no_merge_begins():
    async with nine(slow("get", 2.0, segment(3)), settings=FORGETFUL) as scene:  # it reads what it is to merge
        scene.directory.seal()
        await anyio.sleep(100)
        assert (scene.statistics.merges, scene.statistics.merges_failed) == (0, 0)
    assert await segments(scene.storage) == {segment(number) for number in range(9)}


@pytest.mark.parametrize(
    "fault",
    [slow("put_new", 20.0, FIRST_MERGE), slow("put_new", 0.0, FIRST_MERGE, after_s=20.0), slow("delete", 20.0, nth=1)],
)
@on_virtual_time
async def test_deleting_the_directory_waits_for_the_merge_under_way_and_leaves_nothing(fault):
    async with nine(fault) as scene:
        assert await scene.directory.delete() is True
        assert trio.current_time() == 20.0
        await anyio.sleep(100)
    assert await stored(scene.storage.inner) == {}


@on_virtual_time
async def test_an_error_that_no_store_may_raise_ends_neither_the_engine_nor_the_merging():
    class Broken(MemoryBackend):
        async def put_new(self, path: str, data: bytes) -> None:
            if path == FIRST_MERGE:
                raise ValueError("a defect")
            await super().put_new(path, data)

        async def delete(self, paths) -> None:
            raise ValueError("another")

    storage = Broken()
    async with open_marker_engine(storage, FEW) as engine:
        await ask_for(engine.directory(INSTANT), 0, 30)
        await anyio.sleep(1)
        assert engine.statistics().merges_failed == 1
        assert engine.statistics().merges > 0
    assert await numbers_in(storage) == set(range(30))


@on_virtual_time
async def test_direct_markers_are_never_merged():
    settings = MarkerSettings(kind="direct", segment_count_max=1, merge_freed_min=1)
    async with marker_scene(settings=settings) as scene:
        await ask_for(scene.directory, 0, 20)
        assert scene.statistics.segments == 0
    assert await numbers_in(scene.storage) == set(range(20))
    assert len(await stored(scene.storage)) == 20


class Storage:
    """What a directory would hold and would have written, if it did as the plan says."""

    def __init__(self, plan: MergePlan) -> None:
        self.plan = plan
        self.objects: dict[str, int] = {}
        self.flushed_bytes = 0
        self.sent_bytes = 0
        self.wasted_bytes = 0
        self.merges = 0
        self.objects_max = 0
        self._names = map(str, count())

    def flush(self, size: int, *, copies: int = 1) -> None:
        path = next(self._names)
        self.objects[path] = size
        self.flushed_bytes += size
        self.sent_bytes += copies * size
        self.wasted_bytes += (copies - 1) * size
        self.plan.flushed(path, size)
        self.objects_max = max(self.objects_max, len(self.objects))

    def merge(self, *, lands: bool = True) -> int:
        """The objects that it freed."""
        run = self.plan.due(wasted=self.wasted_bytes)
        size = sum(self.objects[each.path] for each in run)
        self.sent_bytes += size
        if not run or not lands:
            self.wasted_bytes += size
            return 0
        for each in run:
            del self.objects[each.path]
        path = next(self._names)
        self.objects[path] = size
        self.plan.merged(run, path, size)
        self.merges += 1
        return len(run) - 1


def new_storage(count_max: int = 20, freed_min: int = 8, ratio_max: float = 4.0) -> Storage:
    return Storage(MergePlan(count_max=count_max, freed_min=freed_min, ratio_max=ratio_max))


PLANS = st.builds(
    new_storage,
    count_max=st.sampled_from([1, 3, 8]),
    freed_min=st.integers(1, 5),
    ratio_max=st.sampled_from([1.0, 1.5, 2.0, 4.0, 6.0]),
)


@given(
    storage=PLANS,
    steps=st.lists(st.tuples(st.integers(1, 1000), st.sampled_from(["well", "fails", "later"])), max_size=120),
    copies=st.just([1] * 120) | st.lists(st.integers(1, 4), min_size=120, max_size=120),
)
@settings(max_examples=examples(200), deadline=None)
def test_no_merge_writes_a_byte_beyond_the_ratio_whatever_the_sizes_and_whatever_fails_or_is_repeated(
    storage, steps, copies
):
    for (size, merging), number in zip(steps, copies, strict=False):
        storage.flush(size, copies=number)
        before = storage.sent_bytes
        if merging != "later":
            freed = storage.merge(lands=merging == "well")
            assert freed == 0 or freed >= storage.plan._freed_min
        is_within = storage.sent_bytes <= storage.plan._ratio_max * storage.flushed_bytes
        assert is_within or storage.sent_bytes == before
        assert sum(storage.objects.values()) == storage.flushed_bytes
        assert {segment.path for segment in storage.plan.segments} == storage.objects.keys()


@given(sizes=st.lists(st.sampled_from([60, 61, 600, 6000]), min_size=500, max_size=500), freed_min=st.integers(4, 20))
@settings(max_examples=examples(20), deadline=None)
def test_as_long_as_there_is_credit_few_objects_lie_there_whatever_the_sizes(sizes, freed_min):
    storage = new_storage(freed_min=freed_min)
    for size in sizes:
        storage.flush(size)
        storage.merge()
    room = 2.5 * (len(sizes) / freed_min) ** (1 / 3)
    assert storage.objects_max <= max(20, freed_min + room) + 1


@pytest.mark.parametrize(
    ("flushes", "objects", "ratio", "extra_puts"),
    [(1000, 21, 2.9, 0.074), (4000, 21, 3.8, 0.081), (8855, 34, 3.9, 0.075), (46_000, 53, 3.7, 0.06)],
)
def test_the_table_of_decision_0027_holds(flushes, objects, ratio, extra_puts):
    """The one of more than twenty is the segment that has just come, before the merge that it brings about."""
    storage = new_storage()
    for _ in range(flushes):
        storage.flush(60)
        storage.merge()
    assert storage.objects_max <= objects
    assert storage.merges <= extra_puts * flushes
    assert round(storage.sent_bytes / storage.flushed_bytes, 1) == ratio


class Watched(list):
    """Counts who is looked at."""

    looks = 0

    def __getitem__(self, key):
        self.looks += 1
        return super().__getitem__(key)

    def __iter__(self):
        self.looks += len(self)
        return super().__iter__()


@pytest.mark.parametrize("ratio_max", [1.0, 4.0])
def test_as_long_as_nothing_can_be_paid_a_flush_looks_at_no_segment_however_many_lie_there(ratio_max):
    plan = MergePlan(count_max=20, freed_min=16, ratio_max=ratio_max)
    for number in range(1000):
        plan.found(f"old{number}", 10_000)
    plan.segments = watched = Watched(plan.segments)
    for number in range(100):
        plan.flushed(f"new{number}", 1)
        assert plan.due(wasted=300) == ()
    assert len(watched) == 1100
    assert watched.looks == 0


def test_segments_of_earlier_servers_are_merged_once_the_flushes_can_pay_for_them():
    storage = new_storage(count_max=2, freed_min=1)
    for number in range(10):
        storage.plan.found(f"old{number}", 100)
        storage.objects[f"old{number}"] = 100
    for _ in range(5):
        storage.flush(10)
        storage.merge()
    assert len(storage.objects) > 10
    storage.flush(1000)
    storage.merge()
    assert len(storage.objects) == 1
    assert storage.sent_bytes <= 4 * storage.flushed_bytes


def test_what_another_server_has_merged_away_is_no_longer_counted():
    plan = MergePlan(count_max=1, freed_min=1, ratio_max=4.0)
    for path in "abcdefgh":
        plan.flushed(path, 10)
    assert len(plan.due()) == 8
    plan.dropped({"a", "b", "c", "d", "e", "f"})
    assert [segment.path for segment in plan.segments] == ["g", "h"]
    assert plan.due() == ()
