from random import Random

import pytest

from tallymark.bench.load import Calling, Latency, Load, Seen, callings, closed_loop, counted, open_loop


def called(calling, *answers):
    """Send each request once it is due; each answer takes this long."""
    now = 0.0
    calling.begin(now)
    for took_s in answers:
        now = max(now, calling.due) + took_s
        calling.heard(now)
    return calling.latency_s


def test_a_late_answer_delays_the_requests_after_it_and_each_counts_from_when_it_was_due():
    calling = Calling(open_loop(iter([1.0, 1.25, 2.0])), count_from=0.0)
    assert called(calling, 0.5, 0.125, 0.125) == [0.5, 0.375, 0.125]
    assert (calling.due, calling.answered) == (None, 3)


def test_the_warm_up_is_not_counted():
    calling = Calling(open_loop(iter([0.5, 2.0])), count_from=1.0)
    assert called(calling, 0.25, 0.125) == [0.125]
    assert calling.answered == 2


def test_a_closed_loop_follows_each_answer_until_its_time_is_over():
    calling = Calling(closed_loop(until=1.0), count_from=0.0)
    assert called(calling, 0.25, 0.5, 0.5) == [0.25, 0.5, 0.5]
    assert calling.due is None


def test_an_answer_after_the_end_counts_by_its_part_before():
    calling = Calling(closed_loop(until=1.0), count_from=0.0, until=1.0)
    called(calling, 0.75, 1.0)
    assert (calling.answered, calling.within) == (2, 1.25)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_counted_load_sends_that_many_requests(count):
    calling = Calling(counted(count), count_from=0.0)
    assert called(calling, *[0.25] * count) == [0.25] * count
    assert calling.due is None


def shares(load, key):
    return [share[key] for share in load.shares()]


def test_connections_and_requests_are_divided_among_processes_without_a_rest():
    load = Load(connections=9, processes=4, count=10)
    assert shares(load, "connections") == [3, 2, 2, 2]
    assert shares(load, "count") == [3, 3, 2, 2]
    assert len(Load(connections=2, processes=4, count=10).shares()) == 2


def test_all_callers_together_send_at_the_rate_of_the_load():
    load = Load(connections=6, processes=2, inflight=2, rate=2400, seconds=10)
    found = [each for share in load.shares() for each in callings(share, 0.0, Random(1))]
    assert len(found) == 12
    dues = 0
    for each in found:
        each.begin(0.0)
        while each.due is not None:
            each.heard(each.due)
            dues += 1
    assert dues == pytest.approx(24_000, rel=0.05)


def test_rounds_are_joined_sample_by_sample():
    counts = {"puts": 2.0}
    one, other = (Seen(latency_s=latency, counted_s=2.0, answered=4, extra=counts) for latency in ((0.1, 0.3), (0.2,)))
    joined = one + other
    assert (joined.latency_s, joined.counted_s, joined.answered) == ((0.1, 0.3, 0.2), 4.0, 8)
    assert (joined.rate, joined.extra) == (3 / 4, {"puts": 4.0})


def test_quantiles_are_samples():
    found = Latency.of([number / 1000 for number in range(1, 1001)])
    assert (found.p50_s, found.p99_s, found.p999_s, found.max_s) == (0.5, 0.99, 0.999, 1.0)
