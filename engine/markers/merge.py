"""Merges of segments in the background: put one new segment, then delete those that it replaces.

Owns: that nothing is deleted before what replaces it is durable, and under a greater number, which readers rely on
(``loading``); and that no merge begins once the directory is sealed.
``MergePlan`` decides which segments are merged.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import anyio

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Backend
from tallymark.backends.errors import NotFound
from tallymark.backends.events import EventLog
from tallymark.engine.markers.numbers import SegmentNumbers
from tallymark.engine.markers.segment import is_whole, merge_segments, segment_number
from tallymark.engine.markers.statistics import MarkerCounts
from tallymark.engine.settings import MarkerSettings

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
    """Choice of segments to merge, so that few objects remain and few bytes are rewritten. Sync and pure.

    Owns: the account of the segments in storage, and of the bytes that rewriting them may still cost. It trusts its
    caller: segments are added once they are durable, and dropped once they need not stay. The arithmetic is in
    ``docs/decisions/0008-merge-policy.md``, the measurements are there and in decision 0027.

    Each segment carries a credit: the bytes that its markers may still be written again. At four bytes written for each
    byte of markers a flush adds three times its own size. A merged segment pays for the merge, and the new segment
    inherits what remains. Segments that were merged equally often are merged together, like the digits of a counter
    (Bentley and Saxe, Decomposable searching problems, 1980): a merge takes whole ranks, the youngest first, and as
    many of them as leave space for the next merge.
    """

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


_events = EventLog(__name__)

READS = 4
"""Segments read at once: a store's calls run in a bounded number of threads, and flushes need them more."""


@dataclass(frozen=True, slots=True)
class _Merged:
    path: str
    data: bytes


class SegmentMerge:
    """The segments of one directory that its server may merge, and the one merge that may be in flight."""

    def __init__(
        self,
        backend: Backend,
        numbers: SegmentNumbers,
        settings: MarkerSettings,
        counts: MarkerCounts,
        *,
        is_plain: bool = False,
    ) -> None:
        self._backend = backend
        self._numbers = numbers
        self._settings = settings
        self._counts = counts
        self._is_plain = is_plain
        self._plan = MergePlan(
            count_max=settings.segment_count_max,
            freed_min=settings.merge_freed_min,
            ratio_max=settings.merge_bytes_ratio_max,
        )
        self._recent: dict[str, bytes] = {}
        """Bytes of this server's own segments, so that they need not be read back."""
        self._recent_bytes = 0
        self._superfluous: list[str] = []
        """Objects whose markers are also stored elsewhere: left by a failed merge's put, or by a failed deletion."""
        self._arrival = anyio.Event()
        self._quiet = anyio.Event()
        self._quiet.set()
        self._retry_at = 0
        self._is_over = False

    @property
    def segment_count(self) -> int:
        """Segments that contain the markers, as far as this server knows."""
        return len(self._plan.segments)

    def flushed(self, path: str, data: bytes) -> None:
        """Record a durable segment."""
        self._plan.flushed(path, len(data))
        if self._recent_bytes + len(data) <= self._settings.merge_memory_bytes:
            self._recent[path] = data
            self._recent_bytes += len(data)
        self._arrival.set()

    def found(self, path: str, size: int) -> None:
        """Record a segment of an earlier server."""
        self._plan.found(path, size)

    def end(self) -> None:
        """Start no more merges. One whose put is in flight continues; ``drained`` waits for it."""
        self._is_over = True

    async def drained(self) -> None:
        """Return when no merge is in flight."""
        await self._quiet.wait()

    async def run(self) -> None:
        """Merge whenever it is due, until cancelled."""
        while not self._is_over:
            self._arrival = anyio.Event()
            run = self._plan.due(wasted=self._counts.wasted_bytes)
            if not run or self._plan.flush_count < self._retry_at:
                await self._arrival.wait()
                continue
            self._quiet = anyio.Event()
            try:
                await self._merge(run)
            finally:
                self._quiet.set()

    async def _merge(self, run: Sequence[LiveSegment]) -> None:
        """Merge, or change nothing and wait until as many segments were added again as a merge has to free."""
        try:
            merged = await self._put(run)
        except Exception as error:  # off the way of every ack: whatever it is, no request may fail of it
            self._counts.merges_failed += 1
            self._retry_at = self._plan.flush_count + self._settings.merge_freed_min
            _events.warning("segments.unmerged", count=len(run), reason=error)
            return
        if merged is not None:
            self._plan.merged(run, merged.path, len(merged.data))
            self._counts.merged(len(run), len(merged.data))
            _events.debug("segments.merged", path=merged.path, count=len(run), bytes=len(merged.data))
            self._forget_bytes(run)
            self._superfluous += [segment.path for segment in run]
            await self._delete_superfluous()

    async def _put(self, run: Sequence[LiveSegment]) -> _Merged | None:
        """Put one durable segment with the markers of all these and return it.

        Return None if one of them is missing, or the directory ended.
        """
        data = await self._read(run)
        path = await self._numbers.next()
        if data is None or self._is_over:
            return None
        assert all(segment_number(segment.path) < segment_number(path) for segment in run)
        self._counts.sent(len(data))
        try:
            with anyio.fail_after(self._settings.flush_timeout_s):
                await self._backend.put_new(path, data)
        except BaseException:
            self._counts.wasted_bytes += len(data)
            self._superfluous.append(path)  # it may be there, or come yet
            self._numbers.unclear(path)
            raise
        return _Merged(path, data)

    async def _read(self, run: Sequence[LiveSegment]) -> bytes | None:
        """Return the lines of all these; None if one is missing, since another server of the instant has merged it, or
        damaged: that one stays for the readers of the markers.
        """
        found: dict[str, bytes] = {}

        async def read(path: str) -> None:
            try:
                with anyio.fail_after(self._settings.flush_timeout_s):
                    data = await self._backend.get(path)
            except NotFound:
                data = b""
            if is_whole(data):
                found[path] = data
            else:
                self._plan.dropped({path})

        known = {path: self._recent[path] for path in (segment.path for segment in run) if path in self._recent}
        await concurrently(read, [segment.path for segment in run if segment.path not in known], limit=READS)
        found.update(known)
        if len(found) < len(run):
            return None
        return merge_segments([found[segment.path] for segment in run], is_plain=self._is_plain)

    async def _delete_superfluous(self) -> None:
        """Delete segments that are not needed. Once the directory has ended, its end deletes them."""
        if self._is_over:
            return
        paths = tuple(self._superfluous)
        try:
            with anyio.fail_after(self._settings.flush_timeout_s):
                await self._backend.delete(paths)
        except Exception as error:  # as above
            _events.warning("segments.undeleted", count=len(paths), reason=error)
        else:
            self._superfluous = self._superfluous[len(paths) :]
            self._numbers.deleted(paths)

    def _forget_bytes(self, run: Sequence[LiveSegment]) -> None:
        for segment in run:
            self._recent_bytes -= len(self._recent.pop(segment.path, b""))
