"""A table that is queried again and again: its log and view stay in memory from one query to the next."""

from dataclasses import dataclass

from tallymark.backends.contract import Backend
from tallymark.backends.options import StorageOptions
from tallymark.engine.clock import SystemClock
from tallymark.engine.inspection.file_sizes import SizeIndex
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.maintenance.store_time import StoreClock
from tallymark.engine.serve.memory import ENTRY_BYTES, TABLE_BYTES
from tallymark.engine.settings import CommitSettings, LeaseSettings, ViewSettings
from tallymark.engine.table import Table
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.views.view import ViewAt

ENTRIES_MAX = 1000
"""Entries that are added to the log in memory before it is read again from a checkpoint on; writers leave one every 64
entries.
"""


@dataclass(frozen=True, slots=True)
class Version:
    """What answers follow from that are a function of the log."""

    position: int
    hash: str
    """Of the log up to there: a table that was created again, or restored, has another."""


class KeptTable(Table):
    """Belongs to one event loop. Queries that were running when it is released raise Closed.

    Only for queries that read no more of the log than what follows a checkpoint, and change nothing.
    """

    def __init__(self, backend: Backend, *, options: StorageOptions | None, views: ViewSettings) -> None:
        super().__init__(
            backend,
            options=options or StorageOptions(),
            commit=CommitSettings(),
            lease=LeaseSettings(),
            views=views,
            clock=SystemClock(),
        )
        self._kept: TableHandle | None = None
        self._table = ""
        self._first_head: int | None = None

    @property
    def memory_bytes(self) -> int:
        """Estimate of what the log, the view and the sizes use."""
        if self._kept is None:
            return TABLE_BYTES
        history = self._kept.log.history
        log_bytes = ENTRY_BYTES * (history.head - history.base)
        sizes_bytes = 0 if self._sizes is None else self._sizes.memory_bytes
        return TABLE_BYTES + log_bytes + self._kept.view_memory_bytes + sizes_bytes

    def release(self) -> None:
        """Release everything that can be read again."""
        if self._kept is not None:
            self._kept.close()
        self._kept = self._first_head = None

    async def version(self) -> Version:
        """Return the version now: one read of the properties, and one beyond the head of the log."""
        handle = self._handle(await self._properties())
        history = await handle.log.refresh()
        return Version(history.head, history.hash_at(history.head))

    async def start(self) -> int:
        """Return the position up to which the log is archived."""
        return (await self._handle(await self._properties()).log.refresh()).start

    async def view_at(self, position: int | None = None) -> ViewAt:
        """Return the files at a position, by default now. Raises InvalidRequest for one that is not available."""
        properties = await self._properties()
        handle = self._handle(properties)
        history = await handle.log.refresh()
        return handle.view(properties).at(history.head if position is None else position)

    def _handle(self, properties: TableProperties | None = None, *, lasts: bool = False) -> TableHandle:
        if properties is None or lasts:
            return super()._handle(properties, lasts=lasts)
        if self._kept is not None and (properties.id != self._table or self._has_grown(self._kept)):
            self.release()
        if self._kept is None:
            self._kept = super()._handle(properties, lasts=True)
            self._table = properties.id
            self._sizes = SizeIndex()
            self._store_clock = StoreClock(self._kept)
        return self._kept

    def _has_grown(self, kept: TableHandle) -> bool:
        head = kept.log.history.head
        if self._first_head is None and head:
            self._first_head = head
        return self._first_head is not None and head - self._first_head > ENTRIES_MAX
