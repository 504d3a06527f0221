"""Readings of the marker engine."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerStatistics:
    """A moment of the engine, over all its directories."""

    waiting: int
    """Markers that wait for a flush."""
    inflight: int
    """Markers in a flush."""
    durable: int
    """Markers known to be durable."""
    requests: int
    refusals: int
    """Requests refused: over a limit, sealed, rolled back, closed."""
    batches_flushed: int
    batches_failed: int
    largest_batch: int
    """Markers in the largest batch flushed."""
    puts: int
    """Puts of segments or direct markers, repeats and merges included."""
    put_bytes: int
    """Bytes of those puts."""
    hedges: int
    """Of those puts, second copies sent because the first was late."""
    hedges_won: int
    """Of those second copies, the ones that were answered first."""
    late_s: float | None
    """How long a put may take now before it is late; None before the first, and where no second copies are sent. The
    largest among the directories."""
    segments: int
    """Segments that hold the markers now, as far as is known."""
    merges: int
    merges_failed: int
    """Merges that changed nothing; they are tried again."""
    merged_segments: int
    """Segments that merges have replaced."""
    merge_bytes: int
    """Bytes of the segments that replaced them."""
    put_s: float | None
    """Measured mean time of a flush; None before the first."""
    interval_s: float
    """The least time between the starts of two flushes, as it stands now; the largest among the directories."""
    throttled: int
    """Flushes during which the store asked for fewer requests: each lengthens the interval."""

    @property
    def hedge_ratio(self) -> float:
        """Second copies to a put that was sent for its own sake."""
        return self.hedges / max(1, self.puts - self.hedges)


class MarkerCounts:
    """What one directory counts; a plain sum is made of them on request."""

    def __init__(self) -> None:
        self.requests = 0
        self.refusals = 0
        self.batches_flushed = 0
        self.batches_failed = 0
        self.largest_batch = 0
        self.puts = 0
        self.put_bytes = 0
        self.hedges = 0
        self.hedges_won = 0
        self.throttled = 0
        self.merges = 0
        self.merges_failed = 0
        self.merged_segments = 0
        self.merge_bytes = 0
        self.wasted_bytes = 0
        """Of ``put_bytes``, those that became no segment: repeated puts, and failed ones."""

    def sent(self, size: int) -> None:
        self.puts += 1
        self.put_bytes += size

    def flushed(self, size: int) -> None:
        self.batches_flushed += 1
        self.largest_batch = max(self.largest_batch, size)

    def merged(self, segments: int, size: int) -> None:
        self.merges += 1
        self.merged_segments += segments
        self.merge_bytes += size
