"""Marker directories, new and found: what they promise to their callers. Case ids in docstrings: Hudi's own tests."""

import anyio
import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import Closed, CorruptObject, FlushFailed, InvalidRequest, Overloaded, RolledBack, Sealed
from tallymark.engine.markers import MarkerAnswer, MarkerName, open_marker_engine
from tallymark.engine.markers.direct import create_direct
from tallymark.engine.markers.directory import always_open
from tallymark.engine.markers.name import marker_line
from tallymark.engine.markers.segment import BATCHED_TYPE, SEQUENCE_BITS
from tallymark.engine.settings import MarkerSettings
from tests.engine.markers.recorded import DIRECT_MARKERS, FOLDER, INSTANT, SEGMENTS, claim, segment, stored
from tests.engine.markers.scene import marker_scene
from tests.invariants import markers_in
from tests.support.faulty import FaultyBackend, hanging, lost_answer, lost_request, refused, slow
from tests.support.loops import on_virtual_time

CREATED, EXISTED = MarkerAnswer.CREATED, MarkerAnswer.EXISTED


@on_virtual_time
async def test_one_marker_is_one_line_in_one_segment():
    """M1."""
    async with marker_scene(worker_count=1) as scene:
        assert await scene.directory.create("p/x.parquet") == (CREATED,)
        assert await scene.directory.names() == (MarkerName("p/x.parquet"),)
        assert (scene.statistics.waiting, scene.statistics.inflight) == (0, 0)
    assert (await stored(scene.storage))[segment(0)] == b"//2822be15 1\np/x.parquet.marker.CREATE\n"


@pytest.mark.parametrize("partitions", [("2020/06/01/", "2020/06/02/", "2025/03/28/"), ("", "", "")])
@pytest.mark.parametrize("kind", ["batched", "direct"])
@on_virtual_time
async def test_names_and_kinds_of_markers_come_back_as_asked_and_stray_files_do_not(kind, partitions):
    """M4, with and without partitions."""
    storage = MemoryBackend()
    first, second, third = partitions
    asked = [(f"{first}file1", "MERGE"), (f"{second}file2", "APPEND"), (f"{third}file3", "CREATE")]
    async with open_marker_engine(storage, MarkerSettings(kind=kind)) as engine:
        for path, io in asked:
            assert await engine.directory(INSTANT).create(path, io=io) == (CREATED,)
    await storage.put(f"{FOLDER}/invalid_file3", b"\xff")
    async with open_marker_engine(storage) as engine:
        names = await engine.directory(INSTANT).names()
    assert {(name.path, name.io) for name in names} == set(asked)
    found = await stored(storage)
    lines = [f"{path}.marker.{io}" for path, io in asked]
    assert markers_in(found) == {(INSTANT, line) for line in lines}
    if kind == "direct":
        assert found == {f"{FOLDER}/{line}": b"" for line in lines} | {f"{FOLDER}/invalid_file3": b"\xff"}


@on_virtual_time
async def test_a_directory_exists_from_its_first_marker_on_and_is_gone_when_it_is_deleted():
    """M5. Reading the names of an instant leaves nothing in storage."""
    async with marker_scene() as scene:
        untouched = scene.engine.directory("untouched")
        assert await untouched.names() == ()
        assert await untouched.delete() is False
        assert await stored(scene.storage) == {}
        await scene.directory.create("x.parquet")
        for was_there in (True, False):
            assert await scene.directory.delete() is was_there
            assert await stored(scene.storage) == {}
            assert await scene.directory.names() == ()
        with pytest.raises(Sealed):
            await scene.directory.create("y.parquet")


@on_virtual_time
async def test_deleting_waits_for_flushes_in_flight_and_so_leaves_nothing():
    async with marker_scene(slow("put_new", 0.5, SEGMENTS)) as scene:
        scene.ask("x.parquet")
        await anyio.sleep(0.25)
        await scene.directory.delete()
        await anyio.sleep(1)
    assert await stored(scene.storage) == {}
    assert [outcome for _, outcome in scene.outcomes] == [Sealed]


@on_virtual_time
async def test_a_request_beyond_the_queue_limit_is_refused_whole():
    async with marker_scene(slow("put_new", 0.5, SEGMENTS), interval_s=0, queue_limit=2) as scene:
        scene.tasks.start_soon(scene.directory.create, "x.parquet")
        await anyio.sleep(0.25)
        with pytest.raises(Overloaded, match="queue_limit=2") as caught:
            await scene.directory.create("y.parquet", "z.parquet")
        assert caught.value.retry_after_s == 0.1
        assert (scene.statistics.waiting, scene.statistics.refusals) == (0, 1)
        assert await scene.directory.create("x.parquet", "y.parquet") == (EXISTED, CREATED)
    assert b"z.parquet" not in b"".join((await stored(scene.storage)).values())


@on_virtual_time
async def test_an_overloaded_directory_takes_requests_again_when_flushes_have_ended():
    async with marker_scene(
        slow("put_new", 0.5, SEGMENTS), refused("put_new", SEGMENTS, nth=1), queue_limit=1
    ) as scene:
        with pytest.raises(FlushFailed):
            await scene.directory.create("x.parquet")
        assert await scene.directory.create("y.parquet") == (CREATED,)
        with pytest.raises(Overloaded) as caught:
            await scene.directory.create("a.parquet", "b.parquet")
        assert caught.value.retry_after_s == 0.5


@pytest.mark.parametrize(
    ("end", "error"),
    [
        (lambda scene: scene.directory.seal(), Sealed),
        (lambda scene: scene.directory.end(RolledBack("another writer was first")), RolledBack),
        (lambda scene: scene.engine.forget(INSTANT), Closed),
        (lambda scene: scene.engine.close(), Closed),
    ],
    ids=["seal", "end", "forget", "close"],
)
@on_virtual_time
async def test_the_first_end_refuses_at_once_what_is_in_flight_what_waits_and_what_comes_later(end, error):
    async with marker_scene(slow("put_new", 1.0, SEGMENTS), interval_s=8) as scene:
        scene.ask("inflight.parquet")
        await anyio.sleep(0.25)
        scene.ask("waiting.parquet")
        await anyio.sleep(0.25)
        end(scene)
        scene.directory.end(CorruptObject("an end that came second"))
        await scene.outcome_of("later.parquet")
        await anyio.sleep(16)
        assert scene.outcomes == [(0.5, error)] * 3
        assert (scene.directory.queue.waiting, scene.directory.queue.inflight) == (0, 0)
        assert scene.directory.counts.refusals == 3
    assert b"waiting" not in b"".join((await stored(scene.storage)).values())


@on_virtual_time
async def test_a_seal_during_the_last_look_at_the_instant_refuses_and_does_not_wait_for_it():
    async def slow_look() -> None:
        await anyio.sleep(1)

    async with marker_scene(check_open=slow_look) as scene:
        scene.ask("x.parquet")
        await anyio.sleep(0.5)
        scene.directory.seal()
    assert scene.outcomes == [(0.5, Sealed)]


@on_virtual_time
async def test_a_directory_is_loaded_on_the_first_request_and_once():
    async with marker_scene(slow("list", 0.5)) as scene:
        await anyio.sleep(1)
        assert scene.storage.calls == []
        for number in range(5):
            scene.ask(f"{number}.parquet")
    assert len(scene.outcomes) == 5
    assert len(scene.storage.paths("list")) == 2  # it lists until two listings agree
    assert scene.storage.paths("put") == [f"{FOLDER}/MARKERS.type"]
    assert [path for path in scene.storage.paths("put_new") if "SERVER" in path] == [claim()]


@pytest.mark.parametrize(("said", "puts"), [(b"TIMELINE_SERVER_BASED", 0), (b"DIRECT", 1), (b"", 1)])
@on_virtual_time
async def test_what_the_folder_says_already_is_not_put_again(said, puts):
    storage = FaultyBackend(MemoryBackend())
    await storage.put(f"{FOLDER}/MARKERS.type", said)
    async with open_marker_engine(storage) as engine:
        await engine.directory(INSTANT).create("x.parquet")
    assert len(storage.paths("put")) == 1 + puts
    assert (await stored(storage))[f"{FOLDER}/MARKERS.type"] == b"TIMELINE_SERVER_BASED"


@on_virtual_time
async def test_a_failed_loading_is_a_failed_flush_and_forgotten():
    async with marker_scene(lost_request("list", nth=1)) as scene:
        with pytest.raises(FlushFailed, match="request was lost"):
            await scene.directory.create("x.parquet")
        assert await scene.directory.create("x.parquet") == (CREATED,)


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        (hanging("put", "*/MARKERS.type", nth=1), 2.5),
        (hanging("put_new", claim(), nth=1), 2.5),
        (lost_answer("put_new", claim(), nth=1), 0.5),
    ],
    ids=["type", "claim", "claim that lands"],
)
@on_virtual_time
async def test_a_put_without_an_answer_while_the_directory_opens_is_repeated(fault, seconds):
    async with marker_scene(fault, flush_timeout_s=2.0, flush_retry_pause_s=0.5) as scene:
        await scene.outcome_of("x.parquet")
    assert scene.outcomes == [(seconds, (CREATED,))]
    assert set(await stored(scene.storage.inner)) == {f"{FOLDER}/MARKERS.type", claim(), segment(0)}


@pytest.mark.parametrize(
    ("name", "data", "error", "objects"),
    [
        ("MARKERS0", b"a.parquet.marker.CREATE,b.parquet\n", "MARKERS0 is not a marker segment", 1),
        ("SERVER2047", b"", "has had 1024 servers", 2),
    ],
    ids=["a damaged segment", "all numbers used"],
)
@on_virtual_time
async def test_where_numbers_or_markers_cannot_be_known_no_segment_is_put(name, data, error, objects):
    storage = MemoryBackend()
    await storage.put(f"{FOLDER}/{name}", data)
    async with open_marker_engine(storage) as engine:
        with pytest.raises(CorruptObject, match=error):
            await engine.directory(INSTANT).create("x.parquet")
    left = await stored(storage)
    assert len(left) == objects
    assert left.keys() <= {f"{FOLDER}/{name}", f"{FOLDER}/MARKERS.type"}


@on_virtual_time
async def test_a_server_that_has_used_all_its_numbers_takes_one_other_incarnation_for_all_its_flushes():
    async with marker_scene(slow("put_new", 0.5, claim(server=1)), interval_s=0) as scene:
        await scene.directory.create("first.parquet")
        last = scene.directory._numbers._sequence = (1 << SEQUENCE_BITS) - 1  # a million flushes later
        for name in ("last", "next", "beside"):
            scene.ask(f"{name}.parquet")
            await anyio.sleep(0.125)
    assert [path for path in scene.storage.paths("put_new") if "SERVER" in path] == [claim(), claim(server=1)]
    assert scene.segment_puts == [segment(0), segment(last), segment(0, server=1), segment(1, server=1)]


@on_virtual_time
async def test_a_new_incarnation_that_cannot_be_claimed_fails_the_flush_only():
    async with marker_scene(refused("put_new", claim(server=1), nth=1)) as scene:
        await scene.directory.create("first.parquet")
        scene.directory._numbers._sequence = 1 << SEQUENCE_BITS
        with pytest.raises(FlushFailed):
            await scene.directory.create("x.parquet")
        assert await scene.directory.create("x.parquet") == (CREATED,)


@on_virtual_time
async def test_a_name_that_breaks_a_rule_refuses_the_request_before_anything_is_read_or_put():
    async with marker_scene() as scene:
        paths = ["fine.parquet", "../x.parquet"]
        for request in (scene.directory.create(*paths), create_direct(scene.storage, INSTANT, paths, always_open)):
            with pytest.raises(InvalidRequest, match=r"'\.\.'"):
                await request
    assert scene.storage.calls == []


@on_virtual_time
async def test_a_request_for_nothing_is_answered_with_nothing():
    async with marker_scene() as scene:
        assert await scene.directory.create() == ()


@on_virtual_time
async def test_the_work_for_a_request_grows_no_faster_than_its_names(monkeypatch):
    comparisons = 0

    class CountedLine(str):
        __slots__ = ()

        def __eq__(self, other):
            nonlocal comparisons
            comparisons += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    counted = "tallymark.engine.markers.directory.marker_line"
    monkeypatch.setattr(counted, lambda path, io: CountedLine(marker_line(path, io)))
    async with marker_scene() as scene:
        await scene.directory.create(*(f"{number}.parquet" for number in range(1000)))
    assert comparisons < 5000


FEW = MarkerSettings(interval_s=0, segment_count_max=8, merge_freed_min=4)


@pytest.mark.parametrize(
    ("faults", "lasting"),
    [
        ([], set()),
        ([lost_answer("put_new", SEGMENTS, nth=3)], {segment(2)}),
        ([lost_request("put_new", SEGMENTS, nth=3)], {segment(2)}),
        ([lost_answer("put_new", f"{FOLDER}/SERVER*", nth=1)], set()),
        ([lost_answer("put_new", segment(9), nth=1)], {segment(9)}),
        ([lost_request("delete", nth=1)], set()),
        ([slow("put_new", 0.5, SEGMENTS), slow("put_new", 3.0, segment(29), nth=1)], {segment(29)}),
    ],
    ids=["none", "answer", "request", "claim", "merge", "delete", "hedged"],
)
@on_virtual_time
async def test_a_new_directory_lists_nothing_and_knows_all_that_it_leaves_and_each_copy_that_may_land_later(
    faults, lasting
):
    """A segment whose put was sent twice may land when a merge has deleted it."""
    storage = FaultyBackend(MemoryBackend(), *faults)
    await storage.put(f"{FOLDER}/MARKERS.type", BATCHED_TYPE)
    async with open_marker_engine(storage, FEW) as engine:
        directory = engine.directory(INSTANT, is_new=True)
        for number in range(40):
            await directory.create(f"{number}.parquet")
            await anyio.wait_all_tasks_blocked()  # the ninth sets a merge off
        await anyio.sleep(10)
        directory.seal()
        await directory.drained()
        assert len(await directory.names()) == 40
        assert storage.paths("list") == []
        assert engine.statistics().merges > 0
        assert directory.objects == lasting | (await stored(storage.inner)).keys()
        assert lasting.isdisjoint(await stored(storage.inner))


@on_virtual_time
async def test_direct_markers_of_one_request_are_put_side_by_side_up_to_the_worker_count():
    storage = FaultyBackend(MemoryBackend(), slow("put_new", 1.0, DIRECT_MARKERS))
    settings = MarkerSettings(kind="direct", worker_count=2)
    await create_direct(storage, INSTANT, ["a", "b", "c"], always_open, settings=settings)
    assert [call.started_s for call in storage.calls] == [0.0, 0.0, 1.0]


@on_virtual_time
async def test_a_direct_marker_that_comes_after_the_seal_is_refused_and_taken_back():
    storage = FaultyBackend(MemoryBackend())

    async def sealed() -> None:
        assert list(await stored(storage)) == [f"{FOLDER}/x.parquet.marker.CREATE"]
        raise Sealed("the job has read its markers")

    with pytest.raises(Sealed):
        await create_direct(storage, INSTANT, ["x.parquet"], sealed)
    assert await stored(storage) == {}
