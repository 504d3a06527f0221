"""Choice of the segments to merge, so that few objects remain and few bytes are rewritten.

Owns: the account of the segments in storage, and of the bytes that rewriting them may still cost. Sync and pure. The
arithmetic is in ``docs/decisions/0008-merge-policy.md``, the measurements are there and in decision 0027.

Each segment carries a credit: the bytes that rewriting its markers may still cost. At four bytes written per byte of
markers a flush earns three times its size. A merged segment pays for the merge, and the new segment inherits the rest.
Segments that were merged equally often are merged together, like the digits of a counter (Bentley and Saxe,
Decomposable searching problems, 1980): a merge takes whole ranks, the youngest first, and as many of them as leave room
for the next merge.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

ROOM_OF_FEW, ROOM_OF_MANY = 1.5, 2.5
"""Merged segments allowed beside the unmerged ones, as a multiple of the cube root of the number of merges. Below 2.5
the credits of a long job are spent too early; above, more objects remain than necessary (decision 0008).
"""

FEW_FLUSHES = 4_000
"""Up to this many flushes credits may be spent sooner, which leaves the fewest objects; beyond it they have to last
(decision 0027).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSegment:
    """A durable segment that this server may merge."""

    path: str
    size: int
    """Size in bytes."""
    credit: int = 0
    """Bytes that rewriting its markers may still cost."""
    rank: int = 0
    """The greatest number of merges that any of its markers has been through."""


@dataclass(slots=True)
class _Rank:
    """Adjacent segments. The last of them has been through the most merges, more than any younger segment."""

    rank: int
    count: int = 0
    size: int = 0
    credit: int = 0

    def join(self, other: "_Rank") -> None:
        self.count += other.count
        self.size += other.size
        self.credit += other.credit


class MergePlan:
    """The account of segments. Its caller adds a segment once it is durable, and drops it once it need not remain."""

    def __init__(self, *, count_max: int, freed_min: int, ratio_max: float) -> None:
        self._count_max = count_max
        self._freed_min = freed_min
        self._ratio_max = ratio_max
        self._spare = 0
        """Credit that belongs to no particular segment."""
        self.flush_count = 0
        self.segments: list[LiveSegment] = []
        """Oldest first."""
        self._ranks: list[_Rank] = []
        """Ranks, oldest first, at whose starts a merge may start. They are few, however many segments there are."""

    def flushed(self, path: str, size: int) -> None:
        """Record a flush that has become a segment."""
        self.flush_count += 1
        self._append(LiveSegment(path=path, size=size, credit=int((self._ratio_max - 1) * size)))

    def found(self, path: str, size: int) -> None:
        """Record a segment of an earlier server, younger than those found before.

        Its past cost is unknown, so it gets no credit.
        """
        self._append(LiveSegment(path=path, size=size, rank=max(1, round(self._ratio_max) - 1)))

    def merged(self, run: Sequence[LiveSegment], path: str, size: int) -> None:
        """Record that these have become one segment, and need not remain."""
        place = self.segments.index(run[0])
        credit = sum(segment.credit for segment in run) - size
        if credit < size:  # not enough for another rewriting: let it pay where a little is missing
            self._spare += credit
            credit = 0
        rank = max(segment.rank for segment in run) + 1
        segments = _without(self.segments, {segment.path for segment in run})
        segments.insert(place, LiveSegment(path=path, size=size, credit=credit, rank=rank))
        self._take(segments)

    def dropped(self, paths: Collection[str]) -> None:
        """Record that these are deleted."""
        self._take(_without(self.segments, paths))

    def due(self, *, wasted: int = 0) -> tuple[LiveSegment, ...]:
        """Return the segments to merge into one now; nothing while there are few, or while the credit is insufficient.

        ``wasted``: bytes sent so far that became no segment, by repeated puts and failed ones; they earn no credit.
        """
        count, room = len(self.segments), self._room
        if count <= max(self._count_max, self._freed_min + room):
            return ()
        lengths = self._affordable_lengths(self._spare - wasted)
        if not lengths:
            return ()
        stuck = count - lengths[-1] + 1
        limit = max(self._count_max, self._freed_min + room, stuck + self._freed_min + room // 2)
        if count <= limit:
            return ()
        length = next(length for length in lengths if count - length + 1 + self._freed_min <= limit)
        return tuple(self.segments[count - length :])

    @property
    def _room(self) -> int:
        """Return how many merged segments may remain beside the unmerged ones."""
        room = ROOM_OF_FEW if self.flush_count <= FEW_FLUSHES else ROOM_OF_MANY
        return int(room * (self.flush_count / self._freed_min) ** (1 / max(1.0, self._ratio_max - 1)))

    def _affordable_lengths(self, spare: int) -> list[int]:
        """Return the lengths of runs of whole ranks from the youngest segment on, shortest first, that free enough
        segments and are affordable.
        """
        lengths = []
        run = _Rank(0)
        for rank in reversed(self._ranks):
            run.join(rank)
            if run.count > self._freed_min and run.credit + spare >= run.size:
                lengths.append(run.count)
        return lengths

    def _take(self, segments: list[LiveSegment]) -> None:
        """Set the account to these segments, and compute their ranks."""
        self.segments, self._ranks = [], []
        for segment in segments:
            self._append(segment)

    def _append(self, segment: LiveSegment) -> None:
        self.segments.append(segment)
        youngest = _Rank(segment.rank, 1, segment.size, segment.credit)
        while self._ranks and self._ranks[-1].rank <= youngest.rank:
            youngest.join(self._ranks.pop())
        self._ranks.append(youngest)


def _without(segments: Iterable[LiveSegment], paths: Collection[str]) -> list[LiveSegment]:
    return [segment for segment in segments if segment.path not in paths]
