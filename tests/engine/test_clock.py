"""The wall clock is a part that is passed in."""

from datetime import UTC, datetime, timedelta

from tallymark.engine.clock import SystemClock


def test_the_system_clock_tells_the_time_in_utc():
    before = datetime.now(UTC)
    now = SystemClock().now()
    assert before <= now <= before + timedelta(minutes=1)
    assert now.utcoffset() == timedelta(0)
