"""Which segments of a marker directory to merge now, so that few objects lie there and few bytes are written.

Owns: the account of the segments in storage, and of the bytes that rewriting them may still cost. Sync and pure. The
arithmetic and the measurements behind it are in ``docs/decisions/0008-merge-policy.md``.

Each segment carries a credit: the bytes that its markers may still be written again. At four bytes written for each
byte of markers a flush brings three times its own size. Whoever is merged pays for the merge, and the new segment
inherits what remains. Segments that were merged equally often go together, like the digits of a counter (Bentley and
Saxe, Decomposable searching problems, 1980): a merge takes whole ranks, the youngest first, and as many of them as
leave room for the next merge.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

ROOM = 2.5
"""Merged segments that may lie beside the unmerged, as a multiple of the cube root of the number of merges. Below 2.5
credits run out before their time; above, more objects lie there than need be (measured: decision 0008)."""


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


class MergePlan:
    """Believes what it is told: segments are added once they are durable, and dropped once they need not stay."""

    def __init__(self, *, count_max: int, freed_min: int, ratio_max: float) -> None:
        self._count_max = count_max
        self._freed_min = freed_min
        self._ratio_max = ratio_max
        self._spare = 0
        """Credit of no segment in particular."""
        self.flush_count = 0
        self.segments: list[LiveSegment] = []
        """The oldest first."""

    def flushed(self, path: str, size: int) -> None:
        """A flush has become a segment."""
        self.flush_count += 1
        self.segments.append(LiveSegment(path=path, size=size, credit=int((self._ratio_max - 1) * size)))

    def found(self, path: str, size: int) -> None:
        """A segment of an earlier server, younger than those found before. What it has cost is unknown: no credit."""
        self.segments.append(LiveSegment(path=path, size=size, rank=max(1, round(self._ratio_max) - 1)))

    def merged(self, run: Sequence[LiveSegment], path: str, size: int) -> None:
        """These have become one segment, and need not stay."""
        place = self.segments.index(run[0])
        credit = sum(segment.credit for segment in run) - size
        if credit < size:  # not enough for another rewriting: let it pay where a little is missing
            self._spare += credit
            credit = 0
        self.dropped({segment.path for segment in run})
        rank = max(segment.rank for segment in run) + 1
        self.segments.insert(place, LiveSegment(path=path, size=size, credit=credit, rank=rank))

    def dropped(self, paths: Collection[str]) -> None:
        """These lie in storage no more."""
        self.segments = [segment for segment in self.segments if segment.path not in paths]

    def due(self, *, wasted: int = 0) -> tuple[LiveSegment, ...]:
        """The segments to merge into one now; nothing as long as there are few, or the credit does not suffice.

        ``wasted``: bytes sent so far that became no segment, by repeated puts and failed ones; nobody's credit.
        """
        count = len(self.segments)
        room = int(ROOM * (self.flush_count / self._freed_min) ** (1 / max(1.0, self._ratio_max - 1)))
        if count <= max(self._count_max, self._freed_min + room):
            return ()
        runs = self._affordable_runs(self._spare - wasted)
        if not runs:
            return ()
        stuck = count - len(runs[-1]) + 1
        limit = max(self._count_max, self._freed_min + room, stuck + self._freed_min + room // 2)
        if count <= limit:
            return ()
        return tuple(next(run for run in runs if count - len(run) + 1 + self._freed_min <= limit))

    def _affordable_runs(self, spare: int) -> list[list[LiveSegment]]:
        """Whole ranks from the youngest segment on, the shortest run first, that free enough and can be paid for."""
        runs = []
        size = credit = rank = 0
        for start in range(len(self.segments) - 1, -1, -1):
            segment = self.segments[start]
            size, credit, rank = size + segment.size, credit + segment.credit, max(rank, segment.rank)
            is_whole = start == 0 or self.segments[start - 1].rank > rank
            if is_whole and len(self.segments) - start > self._freed_min and credit + spare >= size:
                runs.append(self.segments[start:])
        return runs
