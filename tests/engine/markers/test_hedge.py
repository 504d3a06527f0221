"""One flush to a silent or refusing store, and second copies of late puts: when they are sent, what outcomes mean."""

from dataclasses import replace

import anyio
import pytest
import trio

from tallymark.backends.errors import NotPermitted
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import FlushFailed
from tallymark.engine.markers import open_marker_engine
from tallymark.engine.markers.flush import flush
from tallymark.engine.markers.segment import encode_segment
from tallymark.engine.markers.statistics import MarkerCounts
from tallymark.engine.settings import MarkerSettings
from tests.engine.markers.recorded import DIRECT_MARKERS, INSTANT, SEGMENTS, segment, stored
from tests.engine.markers.scene import marker_scene
from tests.support.faulty import Fault, FaultyBackend, hanging, lost_answer, lost_request, refused, slow
from tests.support.loops import on_virtual_time

SETTINGS = MarkerSettings(interval_s=0, flush_timeout_s=60.0, flush_attempt_count=1)
PUT_S = 0.5
"""So that a put is late after 1 s: two medians."""

EACH = slow("put_new", PUT_S, SEGMENTS)


def storage_with(*faults: Fault, where: str = SEGMENTS) -> FaultyBackend:
    return FaultyBackend(MemoryBackend(), *faults, slow("put_new", PUT_S, where))


def puts(storage: FaultyBackend, path: str) -> list[float]:
    """When each put of this marker object was begun."""
    return [call.started_s for call in storage.calls if call.verb == "put_new" and call.paths == (path,)]


async def second_answered_after(storage: FaultyBackend, settings: MarkerSettings = SETTINGS) -> float:
    """Seconds until the second of two requests is acked; the first one has timed a put. Closing waits for no copy."""
    async with open_marker_engine(storage, settings) as engine:
        directory = engine.directory(INSTANT)
        await directory.create("first.parquet")
        asked = trio.current_time()
        await directory.create("second.parquet")
        acked = trio.current_time()
    assert trio.current_time() == acked
    return acked - asked


@pytest.mark.parametrize(
    ("faults", "quantile", "seconds", "copies"),
    [
        pytest.param([hanging("put_new", SEGMENTS, nth=2)], 0.95, 1.5, 2, id="the copy overtakes it"),
        pytest.param([hanging("put_new", SEGMENTS, nth=2, lands=True)], 0.95, 1.5, 2, id="the copy finds it landed"),
        pytest.param([slow("put_new", 0.75, SEGMENTS, nth=2)], 0.95, 1.25, 2, id="it answers before the copy"),
        pytest.param(
            [slow("put_new", 8.0, SEGMENTS, nth=1)], 0.95, 0.5, 1, id="in time, after a first without a limit"
        ),
        pytest.param([slow("put_new", 8.0, SEGMENTS, nth=2)], None, 8.5, 1, id="hedging is turned off"),
        *(
            pytest.param(
                [slow("put_new", 4.0, SEGMENTS, nth=2), error("put_new", SEGMENTS, nth=3)],
                0.95,
                4.5,
                2,
                id=f"the copy fails: {error.__name__}",
            )
            for error in (lost_request, lost_answer, refused)
        ),
    ],
)
@on_virtual_time
async def test_the_first_answer_of_a_put_and_of_its_second_copy_counts_and_an_error_of_one_does_not(
    faults, quantile, seconds, copies
):
    storage = storage_with(*faults)
    assert await second_answered_after(storage, replace(SETTINGS, hedge_quantile=quantile)) == seconds
    assert (len(puts(storage, segment(0))), len(puts(storage, segment(1)))) == (1, copies)
    assert copies == 1 or puts(storage, segment(1))[1] - puts(storage, segment(1))[0] == 2 * PUT_S
    assert (await stored(storage.inner))[segment(1)] == encode_segment(["second.parquet.marker.CREATE"])


@on_virtual_time
async def test_it_is_told_how_many_copies_were_sent_how_many_came_first_and_when_a_put_is_late():
    faults = hanging("put_new", SEGMENTS, nth=3), slow("put_new", 0.75, SEGMENTS, nth=5)
    async with marker_scene(*faults, EACH, settings=SETTINGS) as scene:
        assert scene.statistics.late_s is None
        await scene.create_each(4)
        now = scene.statistics
        assert (now.hedges, now.hedges_won, now.hedge_ratio) == (2, 1, 0.5)
        assert now.late_s == 1.25, "the longest of the few so far"


@on_virtual_time
async def test_a_store_that_answers_within_milliseconds_gets_no_second_copy():
    storage = FaultyBackend(MemoryBackend(), slow("put_new", 0.002, SEGMENTS), slow("put_new", 8.0, SEGMENTS, nth=2))
    assert await second_answered_after(storage) == pytest.approx(8.002)
    assert len(puts(storage, segment(1))) == 1


@on_virtual_time
async def test_a_steady_store_gets_no_second_copy_and_one_that_has_become_slower_for_good_is_believed():
    async with marker_scene(EACH, settings=SETTINGS) as scene:
        await scene.create_each(300)
        assert (scene.statistics.hedges, scene.statistics.late_s) == (0, 2 * PUT_S)
        scene.storage.add(slow("put_new", 2.0, SEGMENTS))
        await scene.create_each(150, "slow/")
        believed = scene.statistics
        assert believed.hedges <= 150 * 0.1 + 2
        assert believed.late_s == 2 * (2.0 + PUT_S)
        await scene.create_each(60, "slower/")
        assert scene.statistics.hedges == believed.hedges


@on_virtual_time
async def test_a_flush_whose_copies_all_fail_fails():
    storage = storage_with(
        slow("put_new", 4.0, SEGMENTS, nth=2), refused("put_new", segment(1), error=NotPermitted("no rights"))
    )
    with pytest.raises(FlushFailed, match="no rights"):
        await second_answered_after(storage)


@on_virtual_time
async def test_direct_markers_are_hedged_too():
    storage = storage_with(hanging("put_new", DIRECT_MARKERS, nth=2), where=DIRECT_MARKERS)
    assert await second_answered_after(storage, replace(SETTINGS, kind="direct")) == 1.0 + PUT_S


@on_virtual_time
async def test_second_copies_are_a_bounded_share_of_the_puts_when_the_whole_store_is_slow():
    async with marker_scene(EACH, interval_s=0.25, worker_count=20, hedge_ratio_max=0.1) as scene:
        await scene.directory.create("first.parquet")
        scene.storage.add(slow("put_new", 4.0, SEGMENTS))
        for number in range(100):
            scene.ask(f"{number}.parquet")
            await anyio.sleep(0.25)
        await anyio.sleep(60)
        now = scene.statistics
        assert 2 <= now.hedges <= 0.1 * now.puts + 2
        assert now.puts == now.batches_flushed + now.hedges + now.merges


@on_virtual_time
async def test_what_a_thousand_quick_puts_have_not_needed_is_not_sent_at_once_when_the_store_stalls():
    async with marker_scene(EACH, interval_s=0, worker_count=20, hedge_ratio_max=0.1) as scene:
        await scene.create_each(1000)
        scene.storage.add(slow("put_new", 10.0, SEGMENTS))
        for number in range(20):
            scene.ask(f"late/{number}.parquet")
            await anyio.sleep(0.001)
        await anyio.sleep(9)
        assert scene.statistics.hedges == 2


@on_virtual_time
async def test_a_segment_that_was_there_and_was_merged_away_by_another_server_is_put_again():
    """Its put landed, its answer was lost; a server that had read it merged it meanwhile."""
    async with marker_scene(lost_answer("put_new", SEGMENTS, nth=1), slow("get", 1.0, SEGMENTS, nth=1)) as scene:
        scene.tasks.start_soon(scene.directory.create, "x.parquet")
        await anyio.sleep(0.5)
        await scene.storage.inner.delete([segment(0)])
        await anyio.sleep(5)
        assert scene.statistics.durable == 1
    assert segment(0) in await stored(scene.storage.inner)


ATTEMPTS = MarkerSettings(flush_timeout_s=2.0, flush_attempt_count=3, flush_retry_pause_s=0.25)
PATH = ".hoodie/.temp/1/MARKERS0"


async def flushed(storage, data: bytes = b"a\n") -> int:
    """The number of puts that it took."""
    counts = MarkerCounts()
    await flush(storage, PATH, data, ATTEMPTS, counts)
    assert counts.put_bytes == len(data) * counts.puts
    return counts.puts


@pytest.mark.parametrize(
    ("faults", "puts", "seconds"),
    [
        ([lost_request("put_new", nth=1)], 2, 0.25),
        ([lost_answer("put_new", nth=1)], 2, 0.25),
        ([hanging("put_new", nth=1)], 2, 2.25),
        ([hanging("put_new", nth=1, lands=True)], 2, 2.25),
        ([lost_answer("put_new", nth=1), lost_request("get", nth=1)], 3, 0.25 + 0.5),
    ],
    ids=["request lost", "answer lost", "timed out", "timed out after landing", "not read back at first"],
)
@on_virtual_time
async def test_a_put_without_an_answer_is_repeated_with_the_same_bytes(faults, puts, seconds):
    storage = FaultyBackend(MemoryBackend(), *faults)
    assert await flushed(storage) == puts
    assert trio.current_time() == seconds
    assert storage.paths("put_new") == [PATH] * puts
    assert await storage.get(PATH) == b"a\n"


@pytest.mark.parametrize(
    ("faults", "error", "puts", "seconds"),
    [
        ([hanging("put_new")], "no answer to 3 attempts: none within 2.0 s", 3, 2.0 + 0.25 + 2.0 + 0.5 + 2.0),
        ([refused("put_new", error=NotPermitted("no rights"))], "no rights", 1, 0.0),
        ([lost_answer("put_new", nth=1), refused("get")], "refused", 2, 0.25),
    ],
    ids=["silent", "refuses", "may not be read back"],
)
@on_virtual_time
async def test_a_flush_fails_when_storage_refuses_or_stays_silent_for_all_attempts(faults, error, puts, seconds):
    storage = FaultyBackend(MemoryBackend(), *faults)
    with pytest.raises(FlushFailed, match=error):
        await flushed(storage)
    assert trio.current_time() == seconds
    assert len(storage.paths("put_new")) == puts


@on_virtual_time
async def test_a_number_that_holds_other_bytes_is_never_taken_for_ours():
    storage = MemoryBackend()
    await storage.put(PATH, b"another's\n")
    with pytest.raises(FlushFailed, match="two servers use one number"):
        await flushed(storage)
    assert await storage.get(PATH) == b"another's\n"
