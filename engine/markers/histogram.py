"""Histogram with a cheap update."""

from bisect import bisect_left

TIME_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the buckets, in seconds: from a local disk's put to the time after which a put is abandoned
(``MarkerSettings.flush_timeout_s``). One more bucket counts longer times.
"""

COUNT_BOUNDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
"""Upper bounds for counts: from one to the most that may wait (``MarkerSettings.queue_limit``)."""


class Histogram:
    """Owned by one event loop; any thread may read it."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """Number of values per bucket."""
        self.total = 0.0
        """The sum of the values."""

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def add_all(self, other: "Histogram") -> None:
        assert self.bounds == other.bounds
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.total += other.total
