"""Merges of segments in the background: put one new segment, then delete those that it replaces.

Owns: nothing is deleted before its replacement is durable, under a greater number, on which readers rely (``loading``);
and no merge starts once the directory is sealed. ``merge_plan`` decides which segments are merged.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Backend
from tallymark.backends.errors import NotFound
from tallymark.backends.events import EventLog
from tallymark.engine.markers.merge_plan import LiveSegment, MergePlan
from tallymark.engine.markers.numbers import SegmentNumbers
from tallymark.engine.markers.segment import segment_number
from tallymark.engine.markers.statistics import MarkerCounts
from tallymark.engine.settings import MarkerSettings

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
        self, backend: Backend, numbers: SegmentNumbers, settings: MarkerSettings, counts: MarkerCounts
    ) -> None:
        self._backend = backend
        self._numbers = numbers
        self._settings = settings
        self._counts = counts
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
        """Return the lines of all these; None if one is missing: another server of the instant has merged it."""
        found: dict[str, bytes] = {}

        async def read(path: str) -> None:
            try:
                with anyio.fail_after(self._settings.flush_timeout_s):
                    data = await self._backend.get(path)
            except NotFound:
                self._plan.dropped({path})
            else:
                found[path] = data[: data.rfind(b"\n") + 1]  # what follows was never acked

        known = {path: self._recent[path] for path in (segment.path for segment in run) if path in self._recent}
        await concurrently(read, [segment.path for segment in run if segment.path not in known], limit=READS)
        found.update(known)
        return b"".join(found[segment.path] for segment in run) if len(found) == len(run) else None

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
