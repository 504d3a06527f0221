"""A table that is queried again and again: its log and view stay in memory from one query to the next."""

import math
from dataclasses import dataclass

import anyio

from tallymark.backends.contract import Backend
from tallymark.backends.options import StorageOptions
from tallymark.engine.clock import SystemClock
from tallymark.engine.documents.timeline import EntryFields, entry_fields
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.inspection.file_sizes import SizeIndex
from tallymark.engine.instants.table_handle import TableHandle, TableMemory
from tallymark.engine.maintenance.store_time import StoreClock
from tallymark.engine.serve.memory import ENTRY_BYTES, TABLE_BYTES, LogBytes
from tallymark.engine.settings import CommitSettings, LeaseSettings, ViewSettings
from tallymark.engine.table import Table
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.views.view import ViewAt

GROUP = 4
"""Entries that are read at first where time is limited; then twice as many."""

ENTRIES_MAX = 1000
"""Entries that are added to the log in memory before it is read again from a checkpoint on; writers leave one every 64
entries.
"""


@dataclass(frozen=True, slots=True)
class Version:
    """What answers follow from that are a function of the log."""

    table: str
    """Id of the table: one that was created again has another."""
    start: int
    """The position up to which the log is archived."""
    position: int
    hash: str
    """Of the log up to there: a table that was restored has another."""

    def replaces(self, before: "Version") -> bool:
        """Return whether the log is another one, as far as this shows."""
        if self.table != before.table or self.position < before.position:
            return True
        return self.position == before.position and self.hash != before.hash


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
        self._entries: dict[int, list[EntryFields]] = {}
        """By position, as they were read; of this log."""

    @property
    def memory_bytes(self) -> int:
        """Estimate of what the log, the view and the sizes use."""
        if self._kept is None:
            return TABLE_BYTES
        log_bytes = self._log_bytes.now() + ENTRY_BYTES * len(self._entries)
        sizes_bytes = 0 if self._sizes is None else self._sizes.memory_bytes
        return TABLE_BYTES + log_bytes + self._kept.view_memory_bytes + sizes_bytes

    def release(self) -> None:
        """Release everything that can be read again."""
        if self._kept is not None:
            self._kept.close()
        self._kept = self._first_head = None
        self._entries = {}

    async def version(self) -> Version:
        """Return the version now: one read of the properties, and one beyond the head of the log."""
        properties = await self._properties()
        history = await self._handle(properties).log.refresh()
        return Version(properties.id, history.start, history.head, history.hash_at(history.head))

    async def entries(self, *, after: int | None = None, limit: int, within_s: float = math.inf) -> list[EntryFields]:
        """Return the fields of the entries that ``timeline`` returns. Entries that an earlier query has read are not
        read again: one of 10,000 files takes 75 ms. Those that cannot be read in about that time are left out, the
        oldest ones.
        """
        until = anyio.current_time() + within_s
        handle = self._handle(await self._properties())
        log = handle.log
        positions = await log.positions(after=after, limit=limit)
        oldest = next((position for position in positions if position in self._entries), None)
        if oldest is not None and not await log.has(oldest):
            self._entries = {}  # archived since
        known, size = self._entries.copy(), len(positions) if within_s == math.inf else GROUP
        while unknown := [at for at, position in enumerate(positions) if position not in known]:
            if len(unknown) < len(positions) and anyio.current_time() >= until:
                break
            end = unknown[-1] + 1
            group = [at for back, at in enumerate(unknown[: -size - 1 : -1], 1) if at == end - back]
            try:
                read = await log.entries(after=positions[end - len(group)] - 1, limit=len(group))
            except InvalidRequest:
                if after is not None:
                    raise
                return await self.entries(limit=limit, within_s=within_s)  # without those that are archived
            size *= 2 if len(group) == size else 1
            fresh: dict[int, list[EntryFields]] = {}
            for position, entry in read:
                fresh.setdefault(position, []).append(entry_fields(position, entry))
            known |= fresh
        if handle is self._kept:  # otherwise these may be of a table that was created again
            self._entries = dict(list(known.items())[-ENTRIES_MAX:])
        return [fields for position in positions[unknown[-1] + 1 if unknown else 0 :] for fields in known[position]]

    async def view_at(self, position: int | None = None) -> ViewAt:
        """Return the files at a position, by default now. Raises InvalidRequest for one that is not available."""
        properties = await self._properties()
        handle = self._handle(properties)
        history = await handle.log.refresh()
        return handle.view(properties).at(history.head if position is None else position)

    def _handle(
        self, properties: TableProperties | None = None, *, lasts: bool = False, memory: TableMemory | None = None
    ) -> TableHandle:
        if properties is None or lasts:
            return super()._handle(properties, lasts=lasts)
        if self._kept is not None and (properties.id != self._table or self._has_grown(self._kept)):
            self.release()
        if self._kept is None:
            self._kept = super()._handle(properties, lasts=True)
            self._table = properties.id
            self._log_bytes = LogBytes(self._kept.log)
            self._sizes = SizeIndex()
            self._store_clock = StoreClock(self._kept)
        return self._kept

    def _has_grown(self, kept: TableHandle) -> bool:
        head = kept.log.history.head
        if self._first_head is None and head:
            self._first_head = head
        return self._first_head is not None and head - self._first_head > ENTRIES_MAX
