import pytest

from tallymark.bench.commits.stream import Case, ack_model
from tallymark.bench.load import Load, Seen
from tests.bench.commits.test_commits import measured


def test_a_stream_is_measured_beside_a_model_of_its_acks(tmp_path):
    few = ("--flush-interval-s", 0.05, "--side", "ours", "--max-bytes", 1 << 20)
    acks, costs = measured(tmp_path, "--part", "stream", "--place", "s3", "--latency-ms", 5, *few)
    assert [row["callers"] for row in acks] == [1, 50, 50]
    assert [row["offered"] for row in acks] == [None, None, pytest.approx(0.05 * 50 / 0.07)]
    assert [row["model_s"] for row in acks[:2]] == [0.05, 0.05]
    assert all(row["p99_s"] >= row["mean_s"] > 0.02 for row in acks)
    assert all(row["rows_per_s"] > row["appends_per_s"] > 0 for row in acks)
    assert costs[0]["per_flush"] == 1
    assert costs[1]["per_flush"] > 5
    assert all(row["peak_bytes"] >= row["before_bytes"] > row["max_bytes"] == 1 << 20 for row in costs)
    assert all(row["by_verb"]["put"] > 4 for row in costs)


@pytest.mark.release  # processes of three formats
def test_other_formats_write_the_appends_of_100_callers_at_once(tmp_path):
    sides = ("--side", "delta", "--side", "iceberg")
    acks, costs = measured(tmp_path, "--part", "stream", "--place", "local", *sides)
    assert [row["title"] for row in acks] == ["deltalake, one write", "pyiceberg, one write"]
    assert [(row["callers"], row["model_s"]) for row in acks] == [(100, None)] * 2
    assert [(row["per_flush"], row["peak_bytes"]) for row in costs] == [(100, None)] * 2


def test_callers_that_append_again_when_answered_wait_for_a_whole_interval():
    assert ack_model(1.0, 0.03, None) == 1.0
    assert ack_model(0.1, 0.03, None) == pytest.approx(0.12)


def test_rows_that_keep_coming_wait_for_half_the_interval_and_a_flush():
    assert ack_model(1.0, 0.03, 1e6) == pytest.approx(0.62)
    assert ack_model(1.0, 0.03, 1e-6) == pytest.approx(0.12, abs=1e-5)


def test_rounds_become_rows_of_appends_and_of_flushes():
    extra = {"seconds": 10.0, "refused": 1, "appended": 90, "flushes": 2, "before_bytes": 100, "requests_put": 12}
    first = Seen(
        latency_s=(0.1, 0.3),
        counted_s=11.0,
        answered=2,
        within=1.5,
        caller_cpu_s=0.4,
        extra={**extra, "peak_bytes": 130},
    )
    second = Seen(
        latency_s=(0.2, 0.2),
        counted_s=11.0,
        answered=2,
        within=1.5,
        caller_cpu_s=0.4,
        extra={**extra, "peak_bytes": 120},
    )
    case = Case("Tallymark", Load(connections=2), [first, second], 1, 1.0, 0.6, 1000)
    acks, cost = case.rows()
    assert (acks.appends, acks.refused, acks.appends_per_s) == (4, 2, 0.15)
    assert (acks.mean_s, cost.cpu_s) == pytest.approx((0.2, 0.2))
    assert (acks.rows_per_s, acks.over_model) == pytest.approx((0.15 * 45, 0.2 / 0.6))
    assert (cost.title, cost.per_flush, cost.by_verb) == ("Tallymark, 2 callers, 1.00 s", 1.0, {"put": 6.0})
    assert (cost.before_bytes, cost.peak_bytes) == (100, 130)
