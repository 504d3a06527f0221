from dataclasses import replace
from itertools import islice

import pytest

from tallymark.bench.markers.throughput import LOADS, ThroughputLoad, measure_throughput
from tallymark.bench.markers.throughput_client import paths
from tallymark.engine.markers import MarkerName


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
