"""Choice of segments to merge, so that few objects remain and few bytes are rewritten.

Owns: the account of the segments in storage, and of the bytes that rewriting them may still cost. Sync and pure. The
arithmetic is in ``docs/decisions/0008-merge-policy.md``, the measurements are there and in ``0027-twenty-objects.md``.

Each segment carries a credit: the bytes that its markers may still be written again. At four bytes written for each
byte of markers a flush brings three times its own size. A merged segment pays for the merge, and the new segment
inherits what remains. Segments that were merged equally often go together, like the digits of a counter (Bentley and
Saxe, Decomposable searching problems, 1980): a merge takes whole ranks, the youngest first, and as many of them as
leave room for the next merge.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

ROOM_OF_FEW, ROOM_OF_MANY = 1.5, 2.5
"""Merged segments that may lie beside the unmerged, as a multiple of the cube root of the number of merges. Below 2.5
the credits of a long job run out before their time; above, more objects lie there than need be (decision 0008)."""

FEW_FLUSHES = 4_000
"""Up to here credits may be spent sooner, which leaves the fewest objects; beyond they have to last (decision 0027)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSegment:
    """A durable segment that this server may merge."""

    path: str
    size: int
    """Bytes."""
    credit: int = 0
    """Bytes that rewriting its markers may still cost."""
    rank: int = 0
    """Merges that its most travelled marker has been through."""


@dataclass(slots=True)
class _Rank:
    """Neighbours of which the last has been through the most merges, and through more than any younger segment."""

    rank: int
    count: int = 0
    size: int = 0
    credit: int = 0

    def join(self, other: "_Rank") -> None:
        self.count += other.count
        self.size += other.size
        self.credit += other.credit


class MergePlan:
    """Trusts its caller: segments are added once they are durable, and dropped once they need not stay."""

    def __init__(self, *, count_max: int, freed_min: int, ratio_max: float) -> None:
        self._count_max = count_max
        self._freed_min = freed_min
        self._ratio_max = ratio_max
        self._spare = 0
        """Credit of no segment in particular."""
        self.flush_count = 0
        self.segments: list[LiveSegment] = []
        """The oldest first."""
        self._ranks: list[_Rank] = []
        """Of the segments, the oldest first: where a merge may begin. They are few, however many segments there are."""

    def flushed(self, path: str, size: int) -> None:
        """Record a flush that has become a segment."""
        self.flush_count += 1
        self._append(LiveSegment(path=path, size=size, credit=int((self._ratio_max - 1) * size)))

    def found(self, path: str, size: int) -> None:
        """Record a segment of an earlier server, younger than those found before.

        What it has cost is unknown: no credit.
        """
        self._append(LiveSegment(path=path, size=size, rank=max(1, round(self._ratio_max) - 1)))

    def merged(self, run: Sequence[LiveSegment], path: str, size: int) -> None:
        """Record that these have become one segment, and need not stay."""
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
        """Return the segments to merge into one now; nothing as long as there are few, or the credit does not suffice.

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
        """Merged segments that may lie beside the unmerged."""
        room = ROOM_OF_FEW if self.flush_count <= FEW_FLUSHES else ROOM_OF_MANY
        return int(room * (self.flush_count / self._freed_min) ** (1 / max(1.0, self._ratio_max - 1)))

    def _affordable_lengths(self, spare: int) -> list[int]:
        """Of runs of whole ranks from the youngest segment on, the shortest first, that free enough and can be paid."""
        lengths = []
        run = _Rank(0)
        for rank in reversed(self._ranks):
            run.join(rank)
            if run.count > self._freed_min and run.credit + spare >= run.size:
                lengths.append(run.count)
        return lengths

    def _take(self, segments: list[LiveSegment]) -> None:
        """Return the plan for all of these."""
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
