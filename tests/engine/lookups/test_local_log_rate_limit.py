"""How often a process reads a log by itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.errors import ServiceUnavailable
from tallymark.engine.lookups.local_log import ReadingPace


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def admit(pace: ReadingPace, *, count: int = 2, jitter_s: float = 0.0, patience_s: float = 1000.0) -> float:
    return pace.admit(count_a_minute=count, jitter_s=jitter_s, patience_s=patience_s)


def test_a_reading_begins_at_a_random_moment_within_the_jitter():
    draws = iter([0.0, 0.25, 0.999])
    pace = ReadingPace(monotonic=Clock(), random=lambda: next(draws))
    assert [admit(pace, count=9, jitter_s=2.0) for _ in range(3)] == [0.0, 0.5, 1.998]


def test_a_reading_too_many_waits_until_the_minute_is_over():
    clock = Clock()
    pace = ReadingPace(monotonic=clock, random=lambda: 0.0)
    assert admit(pace) == 0.0
    clock.now = 10.0
    assert admit(pace) == 0.0
    clock.now = 15.0
    assert admit(pace) == 45.0
    assert admit(pace) == 55.0


def test_who_would_have_to_wait_too_long_is_told_so_and_counts_for_nothing():
    pace = ReadingPace(monotonic=Clock(), random=lambda: 0.0)
    admit(pace)
    admit(pace)
    for _ in range(2):
        with pytest.raises(ServiceUnavailable, match=r"2 times within a minute \(ViewSettings\.log_readings=2\)"):
            admit(pace, patience_s=59.0)
    assert admit(pace, patience_s=60.0) == 60.0


@given(st.lists(st.floats(0, 40), max_size=30), st.integers(1, 4), st.floats(0, 5), st.data())
def test_no_minute_has_more_readings_than_may_be(pauses, count, jitter_s, data):
    clock = Clock()
    pace = ReadingPace(monotonic=clock, random=lambda: data.draw(st.floats(0, 0.999)))
    begun: list[float] = []
    for pause_s in pauses:
        clock.now += pause_s
        begun.append(clock.now + admit(pace, count=count, jitter_s=jitter_s, patience_s=1e9))
    begun.sort()
    assert all(later - earlier >= 59.999 for earlier, later in zip(begun, begun[count:], strict=False))
