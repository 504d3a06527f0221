"""The engine as a whole: its block, its readings, and that nobody is left waiting when it ends."""

import anyio
import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import Closed, FlushFailed, InvalidRequest, Overloaded, TallymarkError
from tallymark.engine.markers import MarkerAnswer, open_marker_engine
from tallymark.engine.settings import MarkerSettings
from tests.engine.markers.recorded import INSTANT, SEGMENTS, stored
from tests.engine.markers.scene import marker_scene
from tests.support.faulty import FaultyBackend, hanging, lost_answer, refused, slow
from tests.support.loops import on_virtual_time


async def refusal_of(asking, refusals: list) -> None:
    try:
        await asking
    except TallymarkError as error:
        refusals.append(error)


@on_virtual_time
async def test_a_directory_is_the_same_for_the_same_instant_and_costs_nothing():
    async with marker_scene() as scene:
        assert scene.directory is scene.directory
        assert scene.directory is not scene.engine.directory("other")
        with pytest.raises(InvalidRequest):
            scene.engine.directory("../other")
    assert scene.storage.calls == []


@on_virtual_time
async def test_markers_of_two_instants_do_not_meet():
    async with marker_scene() as scene:
        assert await scene.engine.directory("1").create("x.parquet") == (MarkerAnswer.CREATED,)
        assert await scene.engine.directory("2").create("x.parquet") == (MarkerAnswer.CREATED,)
        await scene.engine.directory("1").delete()
        assert len(await scene.engine.directory("2").names()) == 1


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
        await anyio.sleep(2)
        now = scene.statistics
        assert (now.waiting, now.inflight, now.durable, now.largest_batch) == (0, 0, 3, 2)
        assert (now.batches_flushed, now.batches_failed, now.puts, now.put_bytes) == (2, 0, 2, 3 * 16)
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
async def test_closing_answers_everybody_and_the_blocks_own_error_leaves_bare():
    storage = FaultyBackend(MemoryBackend(), hanging("put_new", SEGMENTS))
    refusals = []
    async with anyio.create_task_group() as tasks:
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with open_marker_engine(storage, MarkerSettings(interval_s=8)) as engine:
                directory = engine.directory(INSTANT)
                for name in ("inflight", "waiting", "waiting too"):
                    tasks.start_soon(refusal_of, directory.create(name), refusals)
                    await anyio.sleep(0.25)
                assert (engine.statistics().inflight, engine.statistics().waiting) == (1, 2)
                1 / 0  # noqa: B018
    assert [type(refusal) for refusal in refusals] == [Closed] * 3
    assert engine.statistics().refusals == 3
    with pytest.raises(Closed):
        engine.directory("another")
    with pytest.raises(Closed):
        await directory.create("late.parquet")


@on_virtual_time
async def test_a_flush_that_ends_after_the_closing_is_refused_though_it_is_durable():
    async with marker_scene(slow("put_new", 0.0, SEGMENTS, after_s=0.5)) as scene:
        scene.ask("x.parquet")
        await anyio.sleep(0.25)
        scene.engine.close()
        await anyio.sleep(1)
        assert [outcome for _, outcome in scene.outcomes] == [Closed]
        assert scene.statistics.durable == 1


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


@on_virtual_time
async def test_an_instant_forgotten_before_its_first_flush_answers_too():
    async with marker_scene() as scene:
        scene.ask("x.parquet")
        scene.engine.forget(INSTANT)
        await anyio.sleep(1)
        assert [outcome for _, outcome in scene.outcomes] == [Closed]


@on_virtual_time
async def test_a_failed_flush_reaches_each_requester_as_an_error_of_its_own():
    storage = FaultyBackend(MemoryBackend(), refused("put_new", SEGMENTS), slow("put_new", 0.5, SEGMENTS))
    refusals = []
    async with open_marker_engine(storage) as engine, anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(refusal_of, engine.directory(INSTANT).create("x.parquet"), refusals)
    assert [type(refusal) for refusal in refusals] == [FlushFailed] * 2
    assert refusals[0] is not refusals[1]
