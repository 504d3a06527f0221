import pytest

from tallymark.engine.markers.histogram import TIME_BOUNDS_S, Histogram


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
