"""The engine as a whole: its block, its readings, and that nobody is left waiting when it ends."""

import anyio
import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import Closed, FlushFailed, InvalidRequest, Overloaded, TallymarkError
from tallymark.engine.markers import MarkerAnswer, open_marker_engine
from tallymark.engine.settings import MarkerSettings
from tests.engine.markers.recorded import INSTANT, SEGMENTS, stored
from tests.support.faulty import FaultyBackend, hanging, lost_answer, refused, slow
from tests.support.loops import on_virtual_time


async def refusal_of(asking, refusals: list) -> None:
    try:
        await asking
    except TallymarkError as error:
        refusals.append(error)


@on_virtual_time
async def test_a_directory_is_the_same_for_the_same_instant_and_costs_nothing():
    storage = FaultyBackend(MemoryBackend())
    async with open_marker_engine(storage) as engine:
        assert engine.directory(INSTANT) is engine.directory(INSTANT)
        assert engine.directory(INSTANT) is not engine.directory("other")
        with pytest.raises(InvalidRequest):
            engine.directory("../other")
    assert storage.calls == []


@on_virtual_time
async def test_markers_of_two_instants_do_not_meet():
    async with open_marker_engine(MemoryBackend()) as engine:
        assert await engine.directory("1").create("x.parquet") == (MarkerAnswer.CREATED,)
        assert await engine.directory("2").create("x.parquet") == (MarkerAnswer.CREATED,)
        await engine.directory("1").delete()
        assert len(await engine.directory("2").names()) == 1


@on_virtual_time
async def test_statistics_tell_what_waits_and_what_was_done():
    storage = FaultyBackend(MemoryBackend(), slow("put_new", 0.5, SEGMENTS))
    settings = MarkerSettings(interval_s=0.25, queue_limit=3)
    async with open_marker_engine(storage, settings) as engine, anyio.create_task_group() as tasks:
        directory = engine.directory(INSTANT)
        tasks.start_soon(directory.create, "a")
        await anyio.sleep(0.125)
        tasks.start_soon(directory.create, "b", "c")
        await anyio.sleep(0.0625)
        with pytest.raises(Overloaded):
            await directory.create("d")
        now = engine.statistics()
        assert (now.waiting, now.inflight, now.durable, now.requests, now.refusals) == (2, 1, 0, 3, 1)
        assert now.put_s is None
        await anyio.sleep(2)
        now = engine.statistics()
        assert (now.waiting, now.inflight, now.durable, now.largest_batch) == (0, 0, 3, 2)
        assert (now.batches_flushed, now.batches_failed, now.puts, now.put_bytes) == (2, 0, 2, 3 * 16)
        assert (now.put_s, now.interval_s) == (0.5, 0.25)


@on_virtual_time
async def test_statistics_count_every_put_of_flushes_side_by_side_and_of_failed_ones():
    storage = FaultyBackend(
        MemoryBackend(),
        slow("put_new", 1.0, SEGMENTS),
        lost_answer("put_new", SEGMENTS, nth=1),
        refused("put_new", SEGMENTS, nth=3),
    )
    async with open_marker_engine(storage, MarkerSettings(interval_s=0)) as engine, anyio.create_task_group() as tasks:
        for name in "abc":
            tasks.start_soon(refusal_of, engine.directory(INSTANT).create(name), [])
            await anyio.sleep(0.125)
        await anyio.sleep(8)
        assert engine.statistics().puts == len([path for path in storage.paths("put_new") if "/MARKERS" in path]) == 4
        assert (engine.statistics().batches_flushed, engine.statistics().batches_failed) == (2, 1)


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
    storage = FaultyBackend(MemoryBackend(), slow("put_new", 0.0, SEGMENTS, after_s=0.5))
    refusals = []
    async with open_marker_engine(storage) as engine, anyio.create_task_group() as tasks:
        directory = engine.directory(INSTANT)
        tasks.start_soon(refusal_of, directory.create("x.parquet"), refusals)
        await anyio.sleep(0.25)
        engine.close()
        await anyio.sleep(1)
        assert [type(refusal) for refusal in refusals] == [Closed]
        assert engine.statistics().durable == 1


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
    refusals = []
    async with open_marker_engine(MemoryBackend()) as engine, anyio.create_task_group() as tasks:
        directory = engine.directory(INSTANT)
        tasks.start_soon(refusal_of, directory.create("x.parquet"), refusals)
        engine.forget(INSTANT)
        await anyio.sleep(1)
        assert [type(refusal) for refusal in refusals] == [Closed]


@on_virtual_time
async def test_a_failed_flush_reaches_each_requester_as_an_error_of_its_own():
    storage = FaultyBackend(MemoryBackend(), refused("put_new", SEGMENTS), slow("put_new", 0.5, SEGMENTS))
    refusals = []
    async with open_marker_engine(storage) as engine, anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(refusal_of, engine.directory(INSTANT).create("x.parquet"), refusals)
    assert [type(refusal) for refusal in refusals] == [FlushFailed] * 2
    assert refusals[0] is not refusals[1]
