"""Readings of the marker engine."""

from collections import Counter
from dataclasses import dataclass

from tallymark.engine.errors import TallymarkError
from tallymark.engine.markers.histogram import COUNT_BOUNDS, TIME_BOUNDS_S, Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerStatistics:
    """A reading of the engine, over all its directories."""

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
    marker_bytes: int
    """Bytes of the markers that were flushed in segments, each once, with the first line of each flush."""
    hedges: int
    """Of those puts, second copies sent because the first was late."""
    hedges_won: int
    """Of those second copies, the ones that were answered first."""
    late_s: float | None
    """How long a put may take now before it is late; None before the first, and where no second copies are sent. The
    largest among the directories.
    """
    segments: int
    """Segments that contain the markers now, as far as is known."""
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
    """The least time between the starts of two flushes now; the largest among the directories."""
    throttled: int
    """Times that the store asked for fewer requests and the interval was lengthened."""

    @property
    def amplification(self) -> float:
        """Bytes put per byte of markers: merges, second copies and repeats make it greater than 1."""
        return self.put_bytes / max(1, self.marker_bytes)

    @property
    def hedge_ratio(self) -> float:
        """Second copies per first put."""
        return self.hedges / max(1, self.puts - self.hedges)


class MarkerCounts:
    """Counts of one directory; sums of them are made on request."""

    def __init__(self) -> None:
        self.requests = 0
        self.refusals = 0
        self.refusals_by: Counter[str] = Counter()
        """Refusals by error class."""
        self.markers = 0
        """Markers flushed by this process."""
        self.direct_markers = 0
        """Of ``markers``, those that are separate objects."""
        self.marker_bytes = 0
        """Bytes of the other markers, in their segments."""
        self.batch_sizes = Histogram(COUNT_BOUNDS)
        """Markers per flush."""
        self.put_times = Histogram(TIME_BOUNDS_S)
        """Seconds from sending a segment, or a direct marker, to storage's answer that it is stored."""
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

    def refused(self, error: TallymarkError) -> None:
        self.refusals += 1
        self.refusals_by[type(error).__name__] += 1

    def sent(self, size: int) -> None:
        self.puts += 1
        self.put_bytes += size

    def flushed(self, size: int) -> None:
        """Count a batch of this many markers."""
        self.markers += size
        self.batches_flushed += 1
        self.batch_sizes.add(size)
        self.largest_batch = max(self.largest_batch, size)

    def merged(self, segments: int, size: int) -> None:
        self.merges += 1
        self.merged_segments += segments
        self.merge_bytes += size

    def add_all(self, other: "MarkerCounts") -> None:
        """Add the counts of another directory; callable from any thread."""
        for name, theirs in vars(other).items():
            mine = getattr(self, name)
            if isinstance(mine, Histogram):
                mine.add_all(theirs)
            elif isinstance(mine, Counter):
                mine.update(theirs.copy())
            else:
                setattr(self, name, max(mine, theirs) if name == "largest_batch" else mine + theirs)
