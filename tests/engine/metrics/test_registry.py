"""What a scrape finds of marker engines, with or without a table."""

import anyio
import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import FlushFailed, Overloaded, Sealed, TallymarkError
from tallymark.engine.markers import open_marker_engine
from tallymark.engine.settings import MarkerSettings
from tests.engine.markers.recorded import INSTANT, SEGMENTS
from tests.support.faulty import FaultyBackend, refused, slow
from tests.support.scrape import Grown

pytest.importorskip("prometheus_client", reason="needs the extra [prometheus]")

OTHER = "20260102030405679"


async def test_an_engine_that_serves_no_table_is_counted_while_it_runs_and_after(grown: Grown) -> None:
    storage = FaultyBackend(MemoryBackend(), slow("put_new", 0.2, SEGMENTS))
    async with open_marker_engine(storage, MarkerSettings(interval_s=0)) as engine:
        await engine.directory(INSTANT).create("a.parquet", "b.parquet", "c.parquet")
        during = grown()
        engine.forget(INSTANT)
        await engine.directory(OTHER).create("a.parquet")
    after = grown()
    assert [seen.value("markers_total", kind="batched") for seen in (during, after)] == [3, 4]
    assert [seen.value("marker_requests_total") for seen in (during, after)] == [1, 2]
    assert [seen.value("marker_puts_total") for seen in (during, after)] == [1, 2]
    assert [seen.value("marker_segments") for seen in (during, after)] == [1, 0]
    assert during.value("marker_interval_seconds") == 0
    assert after.value("marker_ack_seconds_count") == 2


async def test_puts_and_batches_are_in_the_buckets_of_their_times_and_sizes(grown: Grown) -> None:
    storage = FaultyBackend(MemoryBackend(), slow("put_new", 0.2, SEGMENTS))
    async with open_marker_engine(storage) as engine:
        await engine.directory(INSTANT).create("a.parquet", "b.parquet", "c.parquet")
    seen = grown()
    assert [seen.value("marker_put_seconds_bucket", le=bound) for bound in ("0.1", "0.25", "+Inf")] == [0, 1, 1]
    assert seen.value("marker_put_seconds_sum") == pytest.approx(0.2)
    assert [seen.value("marker_batch_size_bucket", le=bound) for bound in ("2", "5", "+Inf")] == [0, 1, 1]
    assert seen.value("marker_batch_size_sum") == 3


async def test_markers_wait_for_a_flush_and_are_in_one(grown: Grown) -> None:
    storage = FaultyBackend(MemoryBackend(), slow("put_new", 1.0, SEGMENTS))
    async with (
        open_marker_engine(storage, MarkerSettings(worker_count=1)) as engine,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(engine.directory(INSTANT).create, "a.parquet")
        await anyio.sleep(0.5)
        tasks.start_soon(engine.directory(INSTANT).create, "b.parquet", "c.parquet")
        await anyio.sleep(0.1)
        seen = grown()
    assert (seen.value("markers_inflight"), seen.value("markers_waiting")) == (1, 2)
    assert (grown().value("markers_inflight"), grown().value("markers_waiting")) == (0, 0)


async def test_refusals_are_counted_by_their_reasons(grown: Grown) -> None:
    async with open_marker_engine(MemoryBackend(), MarkerSettings(queue_limit=2)) as engine:
        directory = engine.directory(INSTANT)
        for count, error in ((3, Overloaded), (1, None), (4, Overloaded)):
            assert await _error_of(directory, count) is error
        directory.seal()
        assert await _error_of(directory, 1) is Sealed
    seen = grown()
    assert seen.value("marker_refusals_total", reason="overloaded") == 2
    assert seen.value("marker_refusals_total", reason="sealed") == 1
    assert seen.value("marker_requests_total") == 4


async def test_a_batch_that_storage_does_not_take_is_a_failed_one(grown: Grown) -> None:
    storage = FaultyBackend(MemoryBackend(), refused("put_new", SEGMENTS))
    async with open_marker_engine(storage) as engine:
        assert await _error_of(engine.directory(INSTANT), 2) is FlushFailed
    seen = grown()
    assert seen.value("marker_batches_failed_total") == 1
    assert seen.total("markers_total") == seen.value("marker_put_seconds_count") == 0


async def test_amplification_is_bytes_put_over_bytes_of_markers(grown: Grown) -> None:
    settings = MarkerSettings(interval_s=0, segment_count_max=1, merge_freed_min=1)
    async with open_marker_engine(MemoryBackend(), settings) as engine:
        for number in range(10):
            await engine.directory(INSTANT).create(f"{number}.parquet")
            await anyio.sleep(1)
        statistics = engine.statistics()
    seen = grown()
    written, payload = seen.value("marker_put_bytes_total"), seen.value("marker_bytes_total")
    assert payload == 10 * len("0.parquet.marker.CREATE\n")
    assert seen.value("marker_merges_total", outcome="merged") == statistics.merges > 0
    assert seen.value("marker_merged_segments_total") == statistics.merged_segments
    assert 1 < written / payload == statistics.amplification <= 4


async def test_second_copies_of_late_puts_are_counted_and_those_that_came_first(grown: Grown) -> None:
    storage = FaultyBackend(MemoryBackend(), slow("put_new", 0.1, SEGMENTS))
    async with open_marker_engine(storage, MarkerSettings(interval_s=0)) as engine:
        directory = engine.directory(INSTANT)
        await directory.create("a.parquet")
        storage.add(slow("put_new", 5.0, SEGMENTS, nth=1))
        await directory.create("b.parquet")
        seen = grown()
        await directory.drained()
    assert (seen.value("marker_hedges_total"), seen.value("marker_hedges_won_total")) == (1, 1)
    assert seen.value("marker_late_seconds") > 0.1
    assert grown().value("marker_put_seconds_bucket", le="10.0") == 3


async def _error_of(directory, count: int) -> type[TallymarkError] | None:
    try:
        await directory.create(*(f"{number}.parquet" for number in range(count)))
    except TallymarkError as error:
        return type(error)
    return None
