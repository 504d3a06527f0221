from dataclasses import replace
from itertools import islice

import pytest

from tallymark.bench.markers.pending import measure_pending
from tallymark.bench.markers.throughput import LOADS, ThroughputLoad, measure_throughput
from tallymark.bench.markers.throughput_client import paths
from tallymark.engine.markers import MarkerName
from tallymark.engine.settings import MarkerSettings, ServiceSettings


@pytest.mark.parametrize("load", LOADS, ids=lambda load: f"{load.kind}-{load.names}")
def test_a_load_is_counted_on_both_sides(load: ThroughputLoad) -> None:
    found = measure_throughput(replace(load, processes=2, connections=4, seconds=3, warm_up_s=0.1))
    assert found.markers_s > 0
    assert found.asks_s * load.names == pytest.approx(found.markers_s)
    assert found.ack.count > 0
    assert found.ack.p50_s >= load.put_s
    assert found.server_cpu_us > 0
    assert found.document()["load"]["kind"] == load.kind


def test_no_two_clients_ask_for_the_same_name() -> None:
    names = [MarkerName.of(path) for who in ("000", "001", "100") for path in islice(paths(who), 100)]
    assert len(set(names)) == 300


def test_a_service_reads_and_takes_no_more_than_its_limits() -> None:
    """As many connections as are needed to pass ``queue_limit``; scaled down, the defaults' proportions."""
    found = measure_pending(asked=40_000, connections=8, many=400)
    assert found.inflight == 8 * ServiceSettings().inflight_count
    assert found.inflight <= found.names + found.inflight <= MarkerSettings().queue_limit
    assert found.refused > 0
    assert found.retry_after_s > 0
    assert found.grown_bytes < 32 * 1024 * 1024
