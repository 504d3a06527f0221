"""Quantiles of the last puts."""

import statistics
from random import Random

import pytest

from tallymark.engine.markers.put_times import RECENT_COUNT, PutTimes


def test_before_the_first_put_nothing_is_known():
    assert PutTimes().quantile_s(0.95) is None


def test_one_put_is_every_quantile():
    times = PutTimes()
    times.add(0.5)
    assert times.quantile_s(0.5) == times.quantile_s(0.99) == 0.5


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
    for seconds in [5.0] * 1000 + [0.5] * RECENT_COUNT:
        times.add(seconds)
    assert times.quantile_s(0.999) == 0.5
