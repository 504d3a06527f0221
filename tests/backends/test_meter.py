"""Counting requests."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.backends import AlreadyExists, InvalidPath, NotFound, NotPermitted, Throttled, Unavailable
from tallymark.backends.meter import PriceList, RequestMeter, outcome_of


def test_requests_are_counted_by_class_and_outcome_with_their_bytes():
    meter = RequestMeter()
    meter.record("put", "ok", sent=100, seconds=0.010)
    meter.record("put", "exists", sent=50, seconds=0.012)
    meter.record("get", "ok", received=7, seconds=0.001)
    found = meter.statistics()
    assert [each.request_class for each in found.classes] == ["put", "get"]
    assert found.of("put").outcomes == {"ok": 1, "exists": 1}
    assert (found.of("put").count, found.of("get").count, found.of("list").count, found.count) == (2, 1, 0, 3)
    assert (found.sent_bytes, found.received_bytes) == (150, 7)
    assert repr(meter) == "<RequestMeter 3 requests>"


def test_a_reading_does_not_change_with_what_comes_after():
    meter = RequestMeter()
    meter.record("put", "ok")
    before = meter.statistics()
    meter.record("put", "ok")
    meter.record("put", "unknown")
    assert before.of("put").outcomes == {"ok": 1}
    assert meter.statistics().of("put").outcomes == {"ok": 2, "unknown": 1}


@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=300))
def test_quantiles_of_latency_are_at_most_7_percent_off(latencies):
    meter = RequestMeter()
    for seconds in latencies:
        meter.record("get", "ok", seconds=seconds)
    found = meter.statistics().of("get")
    ordered = sorted(latencies)
    exact = ordered[-(-len(ordered) // 2) - 1]
    assert found.p50_s == pytest.approx(exact, rel=0.07, abs=1e-6)
    assert found.p50_s <= found.p99_s <= found.max_s == ordered[-1]


def test_costs_are_those_of_the_users_price_list():
    meter = RequestMeter()
    for _ in range(2000):
        meter.record("put", "ok", sent=10**6)
    for _ in range(1000):
        meter.record("list", "ok")
        meter.record("head", "not_found")
        meter.record("get_range", "ok")
        meter.record("get", "ok", received=10**6)
        meter.record("delete", "ok")
        meter.record("stage", "ok")
    prices = PriceList(currency="EUR", put=0.005, list=0.004, get=0.0004, sent_gb=0.01, received_gb=0.09)
    assert meter.statistics().cost(prices) == pytest.approx(2 * 0.005 + 0.004 + 3 * 0.0004 + 2 * 0.01 + 0.09)


def test_what_a_store_throttles_it_does_not_bill_and_nothing_costs_without_a_price():
    meter = RequestMeter()
    for outcome in ("ok", "exists", "unknown", "throttled"):
        meter.record("put", outcome, sent=10**9)
    assert meter.statistics().cost(PriceList(currency="USD", put=1000)) == 3
    assert meter.statistics().cost(PriceList(currency="USD")) == 0


def test_threads_lose_no_count():
    meter = RequestMeter()

    def work():
        for _ in range(5000):
            meter.record("put", "ok", sent=1)
            meter.repeated()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = meter.statistics()
    assert (found.count, found.sent_bytes, found.retries) == (40_000, 40_000, 40_000)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (NotFound(""), "not_found"),
        (AlreadyExists(""), "exists"),
        (Throttled(""), "throttled"),
        (Unavailable(""), "unknown"),
        (NotPermitted(""), "refused"),
        (InvalidPath(""), "refused"),
        (KeyboardInterrupt(), "unknown"),
    ],
)
def test_every_error_is_an_outcome(error, outcome):
    assert outcome_of(error) == outcome
