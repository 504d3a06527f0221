"""What a scrape finds of marker engines, with or without a table."""

import anyio
import pytest

from tallymark.engine.errors import FlushFailed, Overloaded, Sealed
from tallymark.engine.markers import MarkerAnswer
from tallymark.engine.markers.segment import encode_segment
from tests.engine.markers.recorded import INSTANT, SEGMENTS
from tests.engine.markers.scene import marker_scene
from tests.support.faulty import refused, slow
from tests.support.scrape import Grown

pytest.importorskip("prometheus_client", reason="needs the extra [prometheus]")


async def test_an_engine_that_serves_no_table_is_counted_while_it_runs_and_after(grown: Grown) -> None:
    async with marker_scene(slow("put_new", 0.2, SEGMENTS), interval_s=0) as scene:
        await scene.directory.create("a.parquet", "b.parquet", "c.parquet")
        during = grown()
        scene.engine.forget(INSTANT)
        await scene.engine.directory("other").create("a.parquet")
    after = grown()
    assert [seen.value("markers_total", kind="batched") for seen in (during, after)] == [3, 4]
    assert [seen.value("marker_requests_total") for seen in (during, after)] == [1, 2]
    assert [seen.value("marker_puts_total") for seen in (during, after)] == [1, 2]
    assert [seen.value("marker_segments") for seen in (during, after)] == [1, 0]
    assert during.value("marker_interval_seconds") == 0
    assert after.value("marker_ack_seconds_count") == 2


async def test_puts_and_batches_are_in_the_buckets_of_their_times_and_sizes(grown: Grown) -> None:
    async with marker_scene(slow("put_new", 0.2, SEGMENTS)) as scene:
        await scene.directory.create("a.parquet", "b.parquet", "c.parquet")
    seen = grown()
    assert [seen.value("marker_put_seconds_bucket", le=bound) for bound in ("0.1", "0.25", "+Inf")] == [0, 1, 1]
    assert seen.value("marker_put_seconds_sum") == pytest.approx(0.2)
    assert [seen.value("marker_batch_size_bucket", le=bound) for bound in ("2", "5", "+Inf")] == [0, 1, 1]
    assert seen.value("marker_batch_size_sum") == 3


async def test_markers_wait_for_a_flush_and_are_in_one(grown: Grown) -> None:
    async with marker_scene(slow("put_new", 1.0, SEGMENTS), worker_count=1) as scene:
        scene.ask("a.parquet")
        await anyio.sleep(0.5)
        scene.ask("b.parquet", "c.parquet")
        await anyio.sleep(0.1)
        seen = grown()
    assert (seen.value("markers_inflight"), seen.value("markers_waiting")) == (1, 2)
    assert (grown().value("markers_inflight"), grown().value("markers_waiting")) == (0, 0)


async def test_refusals_are_counted_by_their_reasons(grown: Grown) -> None:
    async with marker_scene(queue_limit=2) as scene:
        for paths in ("abc", "a", "bcd"):
            await scene.outcome_of(*paths)
        scene.directory.seal()
        await scene.outcome_of("a")
    assert [outcome for _, outcome in scene.outcomes] == [Overloaded, (MarkerAnswer.CREATED,), Overloaded, Sealed]
    seen = grown()
    assert seen.value("marker_refusals_total", reason="overloaded") == 2
    assert seen.value("marker_refusals_total", reason="sealed") == 1
    assert seen.value("marker_requests_total") == 4


async def test_a_batch_that_storage_does_not_take_is_a_failed_one(grown: Grown) -> None:
    async with marker_scene(refused("put_new", SEGMENTS)) as scene:
        await scene.outcome_of("a", "b")
    assert [outcome for _, outcome in scene.outcomes] == [FlushFailed]
    seen = grown()
    assert seen.value("marker_batches_failed_total") == 1
    assert seen.total("markers_total") == seen.value("marker_put_seconds_count") == 0


async def test_amplification_is_bytes_put_over_bytes_of_markers(grown: Grown) -> None:
    async with marker_scene(interval_s=0, segment_count_max=1, merge_freed_min=1) as scene:
        for number in range(10):
            await scene.directory.create(f"{number}.parquet")
            await anyio.sleep(1)
        statistics = scene.statistics
    seen = grown()
    written, payload = seen.value("marker_put_bytes_total"), seen.value("marker_bytes_total")
    assert payload == 10 * len(encode_segment(["0.parquet.marker.CREATE"]))
    assert seen.value("marker_merges_total", outcome="merged") == statistics.merges > 0
    assert seen.value("marker_merged_segments_total") == statistics.merged_segments
    assert 1 < written / payload == statistics.amplification <= 4


async def test_second_copies_of_late_puts_are_counted_and_those_that_came_first(grown: Grown) -> None:
    async with marker_scene(slow("put_new", 0.1, SEGMENTS), interval_s=0) as scene:
        await scene.directory.create("a.parquet")
        scene.storage.add(slow("put_new", 5.0, SEGMENTS, nth=1))
        await scene.directory.create("b.parquet")
        seen = grown()
        await scene.directory.drained()
    assert (seen.value("marker_hedges_total"), seen.value("marker_hedges_won_total")) == (1, 1)
    assert seen.value("marker_late_seconds") > 0.1
    assert grown().value("marker_put_seconds_bucket", le="10.0") == 3
