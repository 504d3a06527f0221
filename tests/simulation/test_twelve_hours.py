"""Twelve hours of virtual time with a crash an hour: nothing grows.

A sixth of the markers of ``python -m tests.simulation.twelve_hours``, in as many flushes: to be done in seconds.
"""

import pytest

from tests.simulation.twelve_hours import HOUR_S, Setting, TwelveHours

pytestmark = pytest.mark.release


def test_in_twelve_hours_with_a_crash_an_hour_objects_bytes_puts_and_names_stay_flat():
    hours = TwelveHours(Setting(rate=12, names=12)).play()
    assert len(hours) == 12
    for hour in hours:
        assert hour.lost == 0
        assert hour.bytes_ratio <= 4
        assert hour.objects_max <= 20 + 20
        assert hour.statistics.durable <= hour.markers + 12, "the names of one job, and of no other"
        assert hour.statistics.puts <= 1.2 * HOUR_S
    last, second = hours[-1], hours[1]
    assert abs(last.statistics.puts / second.statistics.puts - 1) < 0.1
    assert abs(last.objects_max - second.objects_max) <= 5
