"""The marker engine: any number of marker directories, each with its own group commit."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from tallymark.backends.contract import Backend
from tallymark.engine.background import background_tasks
from tallymark.engine.errors import Closed
from tallymark.engine.markers.directory import CheckOpen, CheckPath, MarkerDirectory, always_open, any_path
from tallymark.engine.markers.group_commit import group_commit
from tallymark.engine.markers.process_markers import PROCESS_MARKERS
from tallymark.engine.markers.statistics import MarkerStatistics
from tallymark.engine.settings import MarkerSettings


class MarkerEngine:
    """Made by ``open_marker_engine``, whose block owns its tasks."""

    def __init__(self, backend: Backend, settings: MarkerSettings, tasks: TaskGroup) -> None:
        self._backend = backend
        self._settings = settings
        self._tasks = tasks
        self._directories: dict[str, MarkerDirectory] = {}
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._is_closed = False

    def directory(
        self,
        instant: str,
        *,
        check_open: CheckOpen = always_open,
        check_path: CheckPath = any_path,
        is_new: bool = False,
        is_plain: bool = False,
        checks_claim: bool = False,
    ) -> MarkerDirectory:
        """Return the markers of an instant; the same object for the same instant. No I/O.

        The other arguments count with the first call for an instant: see ``MarkerDirectory``.
        """
        if self._is_closed:
            raise Closed("the marker engine was closed")
        if instant not in self._directories:
            directory = MarkerDirectory(
                self._backend,
                instant,
                self._settings,
                check_open=check_open,
                check_path=check_path,
                is_new=is_new,
                is_plain=is_plain,
                checks_claim=checks_claim,
            )
            self._directories[instant] = directory
            self._scopes[instant] = anyio.CancelScope()
            self._tasks.start_soon(self._run, directory, self._scopes[instant])
        return self._directories[instant]

    def forget(self, instant: str) -> None:
        """Stop serving an instant: its waiting requests are answered Closed. Nothing changes in storage."""
        directory = self._directories.pop(instant, None)
        if directory is not None:
            directory.end(Closed(f"the markers of instant {instant} are served no longer"))
            self._scopes.pop(instant).cancel()

    def statistics(self) -> MarkerStatistics:
        directories = self._directories.values()
        counts = [directory.counts for directory in directories]
        put_times = [put_s for directory in directories if (put_s := directory.pace.put_s) is not None]
        return MarkerStatistics(
            waiting=sum(directory.queue.waiting for directory in directories),
            inflight=sum(directory.queue.inflight for directory in directories),
            durable=sum(directory.durable_count for directory in directories),
            requests=sum(count.requests for count in counts),
            refusals=sum(count.refusals for count in counts),
            batches_flushed=sum(count.batches_flushed for count in counts),
            batches_failed=sum(count.batches_failed for count in counts),
            largest_batch=max((count.largest_batch for count in counts), default=0),
            puts=sum(count.puts for count in counts),
            put_bytes=sum(count.put_bytes for count in counts),
            marker_bytes=sum(count.marker_bytes for count in counts),
            hedges=sum(count.hedges for count in counts),
            hedges_won=sum(count.hedges_won for count in counts),
            late_s=max((late_s for each in directories if (late_s := each.hedge.late_s) is not None), default=None),
            segments=sum(directory.segment_count for directory in directories),
            merges=sum(count.merges for count in counts),
            merges_failed=sum(count.merges_failed for count in counts),
            merged_segments=sum(count.merged_segments for count in counts),
            merge_bytes=sum(count.merge_bytes for count in counts),
            put_s=sum(put_times) / len(put_times) if put_times else None,
            interval_s=max((directory.pace.interval_s for directory in directories), default=0.0),
            throttled=sum(count.throttled for count in counts),
        )

    def close(self) -> None:
        """Refuse all waiting and future requests as Closed; flushes in flight end with the owner's block."""
        self._is_closed = True
        for directory in self._directories.values():
            directory.end(Closed("the marker engine was closed"))

    async def _run(self, directory: MarkerDirectory, scope: anyio.CancelScope) -> None:
        with PROCESS_MARKERS.counting(directory), scope:
            await group_commit(directory, worker_count=self._settings.worker_count)


@asynccontextmanager
async def open_marker_engine(backend: Backend, settings: MarkerSettings | None = None) -> AsyncIterator[MarkerEngine]:
    """Yield a marker engine for the block. When the block ends, every request that still waits is answered Closed."""
    async with background_tasks() as tasks:
        engine = MarkerEngine(backend, settings or MarkerSettings(), tasks)
        try:
            yield engine
        finally:
            engine.close()
