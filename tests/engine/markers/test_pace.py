"""When the next flush may start, and the times of puts, by a clock that the test sets."""

import statistics
from itertools import pairwise
from random import Random

import pytest

from tallymark.engine.markers.histogram import TIME_BOUNDS_S, Histogram
from tallymark.engine.markers.pace import HALVING_PUTS, RECENT_COUNT, Pace, PutTimes


def paced(put_s: float = 1.0) -> Pace:
    """``auto``, at a store whose puts take so long."""
    pace = Pace("auto", throttled_max_s=8.0)
    pace.measured(put_s, started=0.0)
    return pace


def start_when_asked(pace: Pace, now: float, timer_late_s: float) -> float:
    """When a flush starts that somebody wants at ``now``, by a timer that wakes late."""
    delay_s = pace.delay_s(now)
    started = now + delay_s + timer_late_s * (delay_s > 0)
    pace.started(started)
    return started


def test_a_start_that_a_timer_made_late_counts_from_when_it_was_due():
    pace = Pace(8.0)
    pace.started(0.0)
    assert start_when_asked(pace, 1.0, timer_late_s=1.0) == 9.0
    assert pace.delay_s(9.0) == 7.0
    assert start_when_asked(pace, 10.0, timer_late_s=20.0) == 36.0
    assert pace.delay_s(36.0) == 0, "by an interval at most"
    pace.started(36.0)
    assert pace.delay_s(36.0) == 8.0


def test_a_start_after_an_idle_time_gives_no_right_to_an_early_one():
    pace = Pace(8.0)
    pace.started(0.0)
    assert start_when_asked(pace, 100.0, timer_late_s=1.0) == 100.0
    assert pace.delay_s(101.0) == 7.0


@pytest.mark.parametrize("interval_s", [0.0005, 0.001, 0.002, 0.025])
@pytest.mark.parametrize("rate", [1_000, 10_000])
def test_by_a_coarse_timer_as_many_flushes_start_as_the_interval_says_and_none_much_too_early(interval_s, rate):
    pace, random, now, starts = Pace(interval_s), Random(1), 0.0, []
    while len(starts) < 2000:
        now = max(now, starts[-1] if starts else 0.0) + random.expovariate(rate)
        starts.append(start_when_asked(pace, now, timer_late_s=random.uniform(0.0, 0.001)))
    gaps = [after - before for before, after in pairwise(starts[500:])]
    assert sum(gaps) / len(gaps) >= interval_s * 0.99
    assert sum(gaps) / len(gaps) <= interval_s + 1.1 / rate
    assert min(gaps) >= interval_s - 0.002


def test_a_process_that_is_late_by_itself_is_not_taken_for_its_timer():
    pace = Pace(0.1)
    pace.started(0.0)
    now = 0.0
    for _ in range(200):
        now = start_when_asked(pace, now, timer_late_s=0.05)
    assert pace.delay_s(now) >= 0.05 - 0.003
    assert pace.delay_s(now + pace.delay_s(now) - 0.004) > 0


def test_auto_begins_with_what_another_put_took_and_goes_by_flushes_from_the_first_on():
    pace = Pace("auto")
    assert pace.interval_s == 0
    pace.expected(4.0)
    assert (pace.interval_s, pace.put_s) == (1.0, None)
    pace.measured(2.0, started=0.0)
    assert (pace.interval_s, pace.put_s) == (0.5, 2.0)


@pytest.mark.parametrize(("before_s", "after_s"), [(0.002, 0.1), (0.1, 0.002), (0.1, 0.1)])
def test_auto_has_forgotten_another_latency_after_a_hundred_flushes(before_s, after_s):
    pace = paced(before_s)
    for _ in range(100):
        pace.measured(after_s, started=1.0)
    assert pace.interval_s == pytest.approx(after_s / 4, rel=0.01)


def test_auto_follows_the_mean_of_puts_with_a_long_tail():
    pace, random, intervals = Pace("auto"), Random(1), []
    for _ in range(5000):
        pace.measured(random.lognormvariate(0, 0.69), started=0.0)
        intervals.append(pace.interval_s)
    mean_s = sum(intervals) / len(intervals)
    assert mean_s == pytest.approx(1.269 / 4, rel=0.03), "the mean of that distribution"
    wobble = sum((each - mean_s) ** 2 for each in intervals) / len(intervals) / mean_s**2
    assert wobble < 0.05, "by its square a mean wait is longer than with a steady interval: 4 % of an eighth of a put"


def test_throttling_lengthens_the_interval_by_half_once_in_the_time_that_it_takes_to_see_what_that_helps():
    pace = paced(1.0)
    assert [pace.throttled(now) for now in (10.0, 10.1, 11.3)] == [True, False, False]
    assert not pace.throttled(20.0, started=9.9)
    assert pace.interval_s == 0.375
    assert pace.throttled(11.5)
    assert (pace.interval_s, pace.is_lengthened) == (0.5625, True)


@pytest.mark.parametrize(
    ("pace", "count", "interval_s"),
    [(paced(1.0), 20, 8.0), (Pace(2.0, throttled_max_s=1.0), 1, 2.0), (Pace(0), 1, 0.001)],
    ids=["to the bound", "not at all where the bound is below it", "also from zero"],
)
def test_throttling_lengthens_an_interval(pace, count, interval_s):
    for number in range(count):
        pace.throttled(100.0 * number)
    assert (pace.interval_s, pace.is_lengthened) == (interval_s, interval_s != 2.0)


def test_good_puts_bring_a_lengthened_interval_back_by_half_in_so_many():
    pace = paced(0.1)
    for number in range(4):
        pace.throttled(10.0 * number)
    before_s = pace.interval_s
    assert before_s == pytest.approx(0.025 * 1.5**4)
    for _ in range(HALVING_PUTS):
        pace.measured(0.1, started=30.5)
    assert pace.interval_s == pytest.approx(before_s / 2, rel=0.02)
    for _ in range(2 * HALVING_PUTS):
        pace.measured(0.1, started=30.5)
    assert pace.interval_s == pytest.approx(0.025)
    assert not pace.is_lengthened


def test_a_long_interval_is_brought_back_by_half_within_ten_seconds_or_so():
    pace = paced(0.1)
    for number in range(20):
        pace.throttled(100.0 * number)
    now, intervals = 2000.0, [pace.interval_s]
    while now < 2010.0:
        now += pace.interval_s
        pace.measured(0.1, started=now)
        intervals.append(pace.interval_s)
    assert intervals[-1] <= 0.5 * intervals[0]


def test_a_flush_that_was_under_way_when_the_store_throttled_says_nothing_of_its_latency():
    pace = paced(1.0)
    pace.throttled(10.0)
    pace.measured(30.0, started=9.5)
    assert (pace.put_s, pace.interval_s) == (1.0, 0.375)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95, 0.99])
def test_a_quantile_is_one_of_the_recent_times_that_so_many_do_not_exceed(share):
    random, times, drawn = Random(1), PutTimes(), []
    for _ in range(1000):
        drawn.append(random.lognormvariate(0, 1))
        times.add(drawn[-1])
    recent = drawn[-RECENT_COUNT:]
    found = times.quantile_s(share)
    assert found in recent
    assert abs(statistics.fmean(each <= found for each in recent) - share) <= 1 / RECENT_COUNT


def test_what_was_long_ago_is_forgotten():
    times = PutTimes()
    assert times.quantile_s(0.95) is None
    for seconds in [5.0] * 1000 + [0.5] * RECENT_COUNT:
        times.add(seconds)
    assert times.quantile_s(0.999) == 0.5


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [(0.0, 0), (0.001, 0), (0.0011, 1), (30.0, len(TIME_BOUNDS_S) - 1), (31.0, len(TIME_BOUNDS_S))],
)
def test_a_bucket_holds_what_took_its_bound_at_most(seconds: float, bucket: int) -> None:
    times = Histogram(TIME_BOUNDS_S)
    times.add(seconds)
    assert [number for number, count in enumerate(times.counts) if count] == [bucket]


def test_the_times_of_two_are_those_of_either() -> None:
    both, other = Histogram(TIME_BOUNDS_S), Histogram(TIME_BOUNDS_S)
    both.add(0.002)
    other.add(0.002)
    other.add(3.0)
    both.add_all(other)
    assert (sum(both.counts), both.counts[1]) == (3, 2)
    assert both.total == pytest.approx(3.004)
    assert sum(other.counts) == 2
