"""File-system view: a table's files by partition, at each position from a floor to the head of the log read so far.

Owns: the incremental sync, the position of an answer, and that what a store has lost is read again. Does not own: where
blocks are stored (``ViewStore``), what is read from storage (``ViewBase``), which entries count (``History``).
"""

import math
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from dataclasses import dataclass
from heapq import nlargest
from operator import attrgetter

from tallymark.backends.concurrently import concurrently
from tallymark.backends.events import EventLog
from tallymark.engine.errors import Closed, CorruptObject, InvalidRequest
from tallymark.engine.timeline.entry import DataFile, LogEntry
from tallymark.engine.timeline.history import History
from tallymark.engine.views.base import NoBase, PartitionState, ViewBase
from tallymark.engine.views.block import (
    LiveSizes,
    find_live,
    mark_all_removed,
    sum_live,
    unpack_live,
    unpack_rows,
    without_removed,
)
from tallymark.engine.views.change import Change, changes_of
from tallymark.engine.views.memory_store import MemoryStore
from tallymark.engine.views.row import FileRow
from tallymark.engine.views.store import DamagedStore, FullStore, StoreStatistics, ViewStore

_events = EventLog(__name__)

READ_AHEAD = 16
"""Groups of partitions read at once: at 30 ms per request 220 of them, a million files, in half a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewStatistics:
    """A reading of a view. All but the first four count from its creation."""

    head: int
    floor: int
    partitions: int
    """Partitions that ever had a file."""
    store: StoreStatistics
    entries: int
    """Entries applied."""
    loaded: int
    """Partitions that were read from the base."""
    rebuilt: int
    """Partitions that were read again because their blocks could not be trusted."""


class View:
    """Belongs to one event loop. ``at`` returns its answers as of a position."""

    def __init__(
        self,
        store: ViewStore | None = None,
        *,
        base: ViewBase | None = None,
        keep_positions: int | None = None,
        pinned: float = math.inf,
    ) -> None:
        """``keep_positions``: how many positions before the head are answered; None: those whose files no clean has
        expired. Positions from ``pinned`` on are answered in any case, if the base has them.
        """
        self._store = MemoryStore() if store is None else store
        self._base = NoBase() if base is None else base
        self._keep_positions = keep_positions
        self._history = History()
        self._head = self._base.position
        self._floor = self._base.floor
        self._pinned = pinned
        """The oldest position that is answered for as long as the view exists."""
        self._states = dict(self._base.partitions)
        self._unread: dict[str, list[Change]] = {}
        """Changes since the base, of partitions that the store does not contain."""
        self._removals: deque[tuple[int, str]] = deque()
        """In the log's order, above the floor: which partitions have rows to purge once the floor rises."""
        self._entries = self._loaded = self._rebuilt = 0
        self._is_closed = False

    @property
    def head(self) -> int:
        return self._head

    @property
    def floor(self) -> int:
        """The oldest position that is answered."""
        return self._floor

    def sync(self, history: History) -> None:
        """Apply the entries of the history beyond the head, in O(files of those entries): no other files are read.

        Nothing is read but a local store's blocks of the partitions concerned.
        """
        self._history = history
        for position, entry in history.after(self._head):
            self._apply(position, entry)
            self._head = position
        self._head = max(self._head, history.head)
        self.release(history)

    def answers(self, position: int) -> bool:
        """Return whether a position is answered."""
        return self._floor <= position <= self._head

    def at(self, position: int) -> "ViewAt":
        """Return the answers as of a position, whatever is applied later.

        Raises:
            InvalidRequest: it is beyond the head, or below the floor: then only the log has the answer.
        """
        if not self.answers(position):
            raise InvalidRequest(
                f"position {position}: this view answers for {self._floor} to {self._head}; read the log for older "
                "ones, and sync the view for later ones"
            )
        return ViewAt(self, position)

    def pin(self, position: int) -> "ViewAt":
        """Return the same as ``at``; this position and later ones are answered for as long as the view exists."""
        answers = self.at(position)
        self._pinned = min(self._pinned, position)
        return answers

    def statistics(self) -> ViewStatistics:
        return ViewStatistics(
            head=self._head,
            floor=self._floor,
            partitions=len(self._states),
            store=self._store.statistics(),
            entries=self._entries,
            loaded=self._loaded,
            rebuilt=self._rebuilt,
        )

    @property
    def states(self) -> Mapping[str, PartitionState]:
        """Every partition that ever had rows, as of the head."""
        return self._states

    async def block(self, partition: str) -> bytes:
        """Return all rows of a partition that are visible at a position from the floor to the head; empty for an
        unknown one.

        Raises:
            FullStore: there is no room for it. The next call may find some.
            Closed: the view was closed.
        """
        while True:
            self._check_open()
            try:
                rows = self._store.rows(partition)
                if rows is not None or partition not in self._states:
                    return rows or b""
                await self._read(partition)
            except DamagedStore as damage:
                self._rebuild(damage)
                if isinstance(damage, FullStore):
                    raise  # otherwise it would be read permanently

    def cached_block(self, partition: str) -> bytes | None:
        """Return ``block`` if nothing has to be read from the base for it, otherwise None."""
        self._check_open()
        try:
            rows = self._store.rows(partition)
        except DamagedStore as damage:
            self._rebuild(damage)
            return None
        return b"" if rows is None and partition not in self._states else rows

    async def preload(self) -> None:
        """Read every partition."""
        await self.read(list(self._states))

    async def read(self, partitions: Collection[str]) -> None:
        """Read these partitions concurrently."""
        try:
            unread = [partition for partition in partitions if not self._store.contains(partition)]
        except DamagedStore as damage:
            self._rebuild(damage)
            unread = list(partitions)
        await concurrently(self.block, self._base.leaders(unread), limit=READ_AHEAD)
        for partition in unread:
            await self.block(partition)

    def rebase(self, base: ViewBase) -> None:
        """Use a later base from now on: changes before it need not be kept for this view any more."""
        self._base = base
        for partition, changes in list(self._unread.items()):
            self._unread[partition] = [change for change in changes if change.position > base.position]

    def close(self) -> None:
        """Release memory and local files. Later queries for blocks raise Closed."""
        self._is_closed = True
        self._store.close()

    def _check_open(self) -> None:
        """Raise Closed if the view was closed: what it has released would be missing from its answers."""
        if self._is_closed:
            raise Closed("the view was closed")

    def _apply(self, position: int, entry: LogEntry) -> None:
        self._entries += 1
        rebuilt: frozenset[str] = frozenset()
        for change in changes_of(position, entry):
            partition = change.partition
            before = self._states.get(partition)
            if partition not in rebuilt:
                try:
                    self._change(change, is_known=before is not None)
                except DamagedStore as damage:
                    rebuilt |= self._rebuild(damage, also=partition, until=position)
            live = 0 if before is None else before.live
            self._states[partition] = PartitionState(live + len(change.added) - len(change.removed), position)
            if change.removed:
                self._removals.append((position, partition))

    def _change(self, change: Change, *, is_known: bool) -> None:
        partition = change.partition
        if not is_known:
            self._store.load(partition, change.rows())
        elif not self._store.contains(partition):
            self._unread.setdefault(partition, []).append(change)
        else:
            if not self._store.remove(partition, change.removed, change.position):
                reason = f"a file that position {change.position} removes is not there"
                raise DamagedStore(reason, partitions=frozenset({partition}))
            self._store.add(partition, change.rows())

    async def _read(self, partition: str) -> None:
        """Load a partition, and those that are read with it."""
        base = self._base
        blocks = dict(await base.blocks(partition)) if partition in base.partitions else {partition: b""}
        self._check_open()
        if base is not self._base:
            return  # what came between the two bases may be forgotten: callers read the later one
        for found, block in blocks.items():
            if not self._store.contains(found):
                self._store.load(found, self._as_of_head(found, block))
                self._unread.pop(found, None)
                self._loaded += 1

    def _as_of_head(self, partition: str, block: bytes) -> bytes:
        """Return a block of the base, with later changes applied.

        Raises:
            CorruptObject: it lacks a file that was removed later: it is not of this log.
        """
        rows = bytearray(block)
        for change in self._unread.get(partition, ()):
            absent = mark_all_removed(rows, dict.fromkeys(change.removed, change.position))
            if absent is not None:
                raise CorruptObject(
                    f"what partition {partition!r} held at position {self._base.position} lacks {absent}, which "
                    f"position {change.position} removes"
                )
            rows += change.rows()
        return bytes(rows) if self._floor <= self._base.floor else without_removed(rows, self._floor)

    def _rebuild(self, damage: DamagedStore, *, also: str | None = None, until: int | None = None) -> frozenset[str]:
        """Forget what the store may have lost; changes since the base are gathered from the log again.

        ``also`` is a partition whose first rows were being added. Returns the partitions concerned: they are as of
        ``until``, or of the head.
        """
        concerned = frozenset(self._states) if damage.partitions is None else damage.partitions
        if also is not None:
            concerned |= {also}
        _events.warning("view.rebuilt", partitions=len(concerned), reason=damage)
        self._rebuilt += len(concerned)
        self._store.forget(None if damage.partitions is None else concerned)
        for partition in concerned:
            self._unread[partition] = []
        head = self._head if until is None else until
        for position, entry in self._history.after(self._base.position):
            if position > head:
                break
            for change in changes_of(position, entry):
                if change.partition in concerned:
                    self._unread[change.partition].append(change)
        return concerned

    def release(self, history: History) -> None:
        """Answer no more for positions of which a clean that this history contains has expired files."""
        kept = history.horizon if self._keep_positions is None else self._head - self._keep_positions
        self._floor = max(self._floor, history.retained_since(math.floor(min(kept, self._pinned))))
        purged: set[str] = set()
        while self._removals and self._removals[0][0] <= self._floor:
            purged.add(self._removals.popleft()[1])
        for partition in purged:
            self._purge(partition)

    def _purge(self, partition: str) -> None:
        try:
            if self._store.contains(partition):
                self._store.purge(partition, self._floor)
        except DamagedStore as damage:
            self._rebuild(damage)


class ViewAt:
    """The table's files when its log ended at a position: never a later change, and never a part of one.

    Queries wait for a partition that has to be read first; a loaded one needs no wait.

    Raises, each of them:
        InvalidRequest: the view has released this position since.
        CorruptObject: a partition's rows cannot be read.
        FullStore: the disk has no room for a partition's rows.
    """

    def __init__(self, view: View, position: int) -> None:
        self._view = view
        self.position = position

    async def block(self, partition: str) -> bytes:
        """Return the rows from which the partition's answers follow, possibly with files that were added later."""
        block = await self._view.block(partition)
        self._view.at(self.position)
        return block

    def cached_block(self, partition: str) -> bytes | None:
        """Return ``block`` if that needs no wait, otherwise None; None also where the view has released this
        position.
        """
        return self._view.cached_block(partition) if self._view.answers(self.position) else None

    async def files(self, partition: str) -> tuple[DataFile, ...]:
        """Return the live files of a partition, sorted by name; none for one that the table does not have."""
        return live_files(await self.block(partition), partition, self.position)

    async def sizes(self, partition: str) -> LiveSizes:
        """Return the sizes of the live files of a partition, for less than the files themselves take."""
        return sum_live(await self.block(partition), partition, self.position)

    def changes(self) -> dict[str, int]:
        """Return the position of the last change of each partition that ever had a file, by the head. Answers about a
        partition that has not changed later than the position of another query are those of that query.
        """
        return {partition: state.changed_at for partition, state in self._view.states.items()}

    async def read(self, partitions: Collection[str]) -> None:
        """Read those of these partitions concurrently that are not read yet."""
        await self._view.read(partitions)

    async def files_of(self, partitions: Iterable[str]) -> tuple[DataFile, ...]:
        """Return the live files of these partitions, sorted by path."""
        ordered = _sorted(partitions)
        await self._view.read(ordered)
        return tuple([file for partition in ordered for file in await self.files(partition)])

    async def file(self, partition: str, file_id: str) -> DataFile | None:
        """Return the live file of this id; None where there is none: it never existed, or was replaced."""
        return find_live(await self.block(partition), partition, file_id, self.position)

    async def small_files(self, partition: str, *, below: int) -> tuple[DataFile, ...]:
        """Return the live files of fewer bytes."""
        return tuple(file for file in await self.files(partition) if file.bytes < below)

    async def partitions(self) -> tuple[str, ...]:
        """Return the partitions that contain files, sorted."""
        self._view.at(self.position)
        return tuple([partition for partition in _sorted(self._view.states) if await self._has_files(partition)])

    def newest_partitions(self, count: int) -> tuple[str, ...]:
        """Return this many partitions to or from which files were added or removed last, by the head; the
        newest first.
        """
        self._view.at(self.position)
        states = self._view.states
        return tuple(nlargest(count, states, key=lambda partition: (states[partition].changed_at, partition)))

    async def all_files(self) -> AsyncIterator[DataFile]:
        """Yield every live file, sorted by path. Reads every partition."""
        await self._view.preload()
        for partition in _sorted(self._view.states):
            for file in await self.files(partition):
                yield file

    async def added_since(self, position: int) -> tuple[DataFile, ...]:
        """Return the live files that were added after an older position, sorted by path."""
        rows = [row async for row in self._changed_since(position) if row.is_live(self.position)]
        return tuple(row.file for row in rows if row.added_at > position)

    async def removed_since(self, position: int) -> tuple[DataFile, ...]:
        """Return the files that were live at an older position, and are not any more; sorted by path."""
        self._view.at(position)
        rows = [row async for row in self._changed_since(position) if row.is_live(position)]
        self._view.at(position)  # rows of the older one may have gone while this waited
        return tuple(row.file for row in rows if not row.is_live(self.position))

    async def _changed_since(self, position: int) -> AsyncIterator[FileRow]:
        changed = [partition for partition, state in self._view.states.items() if state.changed_at > position]
        await self._view.read(changed)
        for partition in _sorted(changed):
            for row in _by_name(unpack_rows(await self.block(partition), partition)):
                yield row

    async def _has_files(self, partition: str) -> bool:
        state = self._view.states[partition]
        if state.changed_at <= self.position:
            return state.live > 0
        return bool(await self.files(partition))


def live_files(block: bytes, partition: str, position: int) -> tuple[DataFile, ...]:
    """Return the files of a partition's rows that were live at a position, sorted by name."""
    return tuple(sorted(unpack_live(block, partition, position), key=attrgetter("name")))


def _sorted(partitions: Iterable[str]) -> list[str]:
    """Return the partitions sorted as the paths of their files."""
    return sorted(partitions, key=lambda partition: f"{partition}/")


def _by_name(rows: Iterable[FileRow]) -> list[FileRow]:
    return sorted(rows, key=lambda row: row.file.name)
