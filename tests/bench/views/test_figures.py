from random import Random

import pytest

from tallymark.bench.views.ground import Effort
from tallymark.bench.views.latency import Latency
from tallymark.bench.views.schedule import Schedule


def test_quantiles_are_samples_that_so_many_do_not_exceed():
    found = Latency.of(number / 1000 for number in range(1000, 0, -1))
    assert (found.count, found.p50_s, found.p90_s, found.p99_s, found.p999_s, found.max_s) == (
        1000,
        0.5,
        0.9,
        0.99,
        0.999,
        1.0,
    )


def test_one_sample_is_all_its_quantiles():
    found = Latency.of([0.25])
    assert {found.p50_s, found.p90_s, found.p99_s, found.p999_s, found.max_s} == {0.25}


def test_connections_together_ask_as_often_as_they_are_told_and_each_at_its_own_moments():
    schedule = Schedule(rate=1000, connections=10, processes=2, seconds=9, warm_up_s=1)
    dues = [list(schedule.dues(Random(number))) for number in range(10)]
    assert sum(map(len, dues)) == pytest.approx(10_000, rel=0.05)
    assert all(due == sorted(due) and due[0] > 0 and due[-1] < 10 for due in dues)
    assert len({due[0] for due in dues}) == 10


def test_a_run_lasts_as_long_as_it_is_told_to():
    assert Effort().lasting(3).schedule.seconds == 3
    assert Effort().lasting(None) == Effort()
