import pytest

from tallymark.bench.markers.load import Load, Seen
from tallymark.bench.markers.measured import Acks
from tallymark.bench.markers.side import Spent


def shares(load, key):
    return [share[key] for share in load.shares()]


def test_connections_and_markers_are_shared_out_among_processes_and_none_is_lost():
    load = Load(connections=9, processes=4, count=10)
    assert shares(load, "connections") == [3, 2, 2, 2]
    assert shares(load, "count") == [3, 3, 2, 2]
    assert len(Load(connections=2, processes=4, count=10).shares()) == 2


def test_each_process_asks_as_often_as_its_connections_are_of_all():
    load = Load(connections=9, processes=4, rate=90, seconds=1, warm_up_s=0.5)
    schedules = shares(load, "schedule")
    assert [schedule["rate"] for schedule in schedules] == [30, 20, 20, 20]
    assert {(schedule["seconds"], schedule["warm_up_s"]) for schedule in schedules} == {(1, 0.5)}


def seen(*latency_s, counted_s=2.0, answered=4):
    return Seen(latency_s=latency_s, counted_s=counted_s, answered=answered, received_bytes=100, caller_cpu_s=0.001)


def test_what_rounds_came_to_is_joined_sample_by_sample():
    both = seen(0.1, 0.3) + seen(0.2, counted_s=1.0)
    assert both.latency.p50_s == 0.2
    assert both.mean_s == pytest.approx(0.2)
    assert both.rate == pytest.approx(1.0)


def test_cpu_and_bytes_are_told_by_the_marker_the_warm_ups_included():
    found = Acks.of(seen(0.1, 0.3), Spent(cpu_s=0.002, puts=2, sent_bytes=880, disk_bytes=8192))
    assert [found.cpu_us, found.caller_cpu_us] == pytest.approx([500, 250])
    assert found.amplification == pytest.approx(2.0)


def test_what_cannot_be_said_of_one_round_is_not_said_of_two():
    assert Spent(cpu_s=1.0, puts=3) + Spent(cpu_s=0.5) == Spent(cpu_s=1.5)
