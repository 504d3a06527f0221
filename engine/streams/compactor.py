"""The compactor of a stream: merges the small files of its flushes, one commit at a time, behind them.

Owns: when it runs, and that none of its errors reaches a caller. Does not own: what one compaction does (``upkeep``).
"""

from collections.abc import Callable, Mapping, Sequence

import anyio

from tallymark.backends.events import EventLog
from tallymark.engine.errors import TallymarkError, TryAgain
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.settings import StreamSettings
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.upkeep.compact import MAX_FILE_SHARE, Compaction, OpenJob, compact
from tallymark.engine.upkeep.due_partitions import DuePartitions

_events = EventLog(__name__)

YIELD_PAUSE_S = 5.0
"""Time until the next attempt after one that has yielded: half of a writer's heartbeat interval."""

FINAL_YIELDS = 3
"""Compactions that may yield at the end before the rest is left as it is."""


def merged_bytes_max(settings: StreamSettings) -> int:
    """Return the size at which a merged file is finished."""
    return max(1, int(MAX_FILE_SHARE * settings.target_file_bytes))


class StreamCompactor:
    """Runs beside a stream in its task group."""

    def __init__(
        self,
        open_job: OpenJob,
        open_handle: Callable[[bool], TableHandle],
        properties: TableProperties,
        settings: StreamSettings,
    ) -> None:
        """``open_job`` opens jobs whose files are finished at ``merged_bytes_max``. ``open_handle(True)`` returns a
        handle that reads the log again.
        """
        self._open_job = open_job
        self._open_handle = open_handle
        self._properties = properties
        self._settings = settings
        self._handle: TableHandle | None = None
        self._due = DuePartitions(target_bytes=settings.target_file_bytes, quiet_s=settings.quiet_s)
        self._scope = anyio.CancelScope()
        self._woken = anyio.Event()
        self._closing = anyio.Event()
        self._has_yielded = False
        """Whether the last compaction has yielded, which is logged once."""
        self.ended = anyio.Event()
        """Set when nothing is merged any more."""

    def added(self, files: Sequence[DataFile]) -> None:
        """Record the files of a flush that is committed."""
        if self._settings.target_file_bytes:
            self._due.added(files, now=anyio.current_time())
            self._woken.set()

    def close(self) -> None:
        """Let ``run`` end once the rest is merged, or its time limit is over."""
        self._scope.deadline = anyio.current_time() + self._settings.final_merge_s
        self._closing.set()
        self._woken.set()

    async def run(self) -> None:
        """Merge what is due until ``close``, and the rest then."""
        try:
            with self._scope:
                await self._until_closed()
                await self._merge_rest()
            if self._scope.cancelled_caught:
                _events.info("compaction.unfinished", url=self._url, seconds=self._settings.final_merge_s)
        finally:
            self._drop_handle()
            self.ended.set()

    async def _until_closed(self) -> None:
        while not self._closing.is_set():
            self._woken = anyio.Event()
            if partitions := self._due.take(now=anyio.current_time()):
                found = await self._compact(partitions)
                if found.yielded_to is not None:
                    with anyio.move_on_after(YIELD_PAUSE_S):
                        await self._closing.wait()
            else:
                with anyio.move_on_after(self._due.next_due_s(now=anyio.current_time())):
                    await self._woken.wait()

    async def _merge_rest(self) -> None:
        yields = 0
        while yields < FINAL_YIELDS and (partitions := self._due.take(now=anyio.current_time(), is_ending=True)):
            yields += (await self._compact(partitions)).yielded_to is not None

    async def _compact(self, partitions: Mapping[str, bool]) -> Compaction:
        """Return the result. After an error the partitions wait for their next files."""
        found = Compaction(idle=frozenset(partitions))
        try:
            try:
                found = await self._attempt(partitions)
            except TryAgain:  # others have archived the log since it was read
                self._drop_handle()
                self._handle = self._open_handle(True)
                found = await self._attempt(partitions)
        except TallymarkError as error:
            _events.warning("compaction.failed", url=self._url, reason=error)
            self._drop_handle()
        except Exception as error:
            _events.fault("compaction.failed", url=self._url, reason=error)
            self._drop_handle()
        if found.yielded_to is not None and not self._has_yielded:
            _events.info("compaction.yielded", url=self._url, winner=found.yielded_to or None)
        self._has_yielded = found.yielded_to is not None
        for partition in found.idle:
            self._due.done(partition, is_quiet=partitions[partition])
        return found

    async def _attempt(self, partitions: Mapping[str, bool]) -> Compaction:
        self._handle = self._handle or self._open_handle(False)
        target_bytes = self._settings.target_file_bytes
        return await compact(self._open_job, self._handle, self._properties, partitions, target_bytes=target_bytes)

    def _drop_handle(self) -> None:
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    @property
    def _url(self) -> str | None:
        return None if self._handle is None else self._handle.backend.url
