"""How long requests for markers waited for their acks: a histogram that costs a request next to nothing."""

from bisect import bisect_left

ACK_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the buckets, in seconds: from a local disk's put to the time at which a flush is given up. What took
longer is in one more."""


class AckTimes:
    """Owned by one event loop; any thread may read it."""

    def __init__(self) -> None:
        self.counts = [0] * (len(ACK_BOUNDS_S) + 1)
        """Acks by bucket, each in one of them."""
        self.total_s = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(ACK_BOUNDS_S, seconds)] += 1
        self.total_s += seconds

    def add_all(self, others: "AckTimes") -> None:
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, others.counts, strict=True)]
        self.total_s += others.total_s
