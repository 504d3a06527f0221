"""The wall clock is a part that is passed in."""

from datetime import UTC, datetime, timedelta

from tallymark.engine.clock import SystemClock, asleep_s


def test_the_system_clock_tells_the_time_in_utc():
    before = datetime.now(UTC)
    now = SystemClock().now()
    assert before <= now <= before + timedelta(minutes=1)
    assert now.utcoffset() == timedelta(0)


def test_the_time_that_a_machine_has_slept_is_whole_seconds_and_goes_on_only_while_it_sleeps():
    slept_s = asleep_s()
    assert slept_s >= 0
    assert slept_s == int(slept_s)
    assert asleep_s() == slept_s
