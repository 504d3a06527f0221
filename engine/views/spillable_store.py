"""Store of blocks in memory up to a bound; the least recently used ones are in a file, with the changes made since."""

import sqlite3
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tallymark.engine.views.journals import DiskPieces, Journals, PiecesFailed, added_rows, joined, removed_rows
from tallymark.engine.views.memory_store import MemoryStore
from tallymark.engine.views.store import DamagedStore, FullStore, StoreStatistics
from tallymark.engine.views.store_folder import StoreFolder

_PRAGMAS = {
    "page_size": 8192,  # the rows of 100 files take two of them
    "journal_mode": "MEMORY",  # a write that does not fit is taken back, and no later process reads what is here
    "synchronous": "OFF",  # for the same reason nothing has to survive a crash
    "locking_mode": "EXCLUSIVE",  # no other process opens it
    "cache_size": -1024,  # KiB: what is asked for often lies in memory anyway, as a block
    "mmap_size": 0,  # truncation of a mapped file ends the process
    "cell_size_check": "ON",  # look at a page that was read before it is believed
}
_REFUSALS = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
"""Errors of a full disk, a quota or a limit of the process, or a disk that has become read-only."""


class SpillFile(DiskPieces):
    """``Pieces`` in SQLite. Created by the first write; a write that its disk refuses leaves it unchanged."""

    def __init__(self, parent: Path) -> None:
        super().__init__(parent)
        self._database: sqlite3.Connection | None = None
        self._inode = 0

    @property
    def memory_bytes(self) -> int:
        """Always 0: its mebibyte of pages is not counted."""
        return 0

    def read(self, first: int, count: int) -> bytes:
        with self._trusted() as database:
            found = database.execute(
                "SELECT data FROM piece WHERE number BETWEEN ? AND ? ORDER BY number", (first, first + count - 1)
            ).fetchall()
        return joined((data for (data,) in found), count)

    def write(self, pieces: Mapping[int, bytes | None]) -> None:
        with self._trusted() as database:
            if len(pieces) == 1:
                _put(database, pieces)
                return
            database.execute("BEGIN")
            try:
                _put(database, pieces)
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:  # SQLite may have taken it back by itself
                    database.execute("ROLLBACK")
                raise

    def close(self) -> None:
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.close()
            self._database = None
        super().close()

    @contextmanager
    def _trusted(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self._opened()
        except (sqlite3.Error, OSError) as error:
            is_refusal = _is_refusal(error)
            raise PiecesFailed(str(error), is_refusal=is_refusal, is_over=not is_refusal) from error

    def _opened(self) -> sqlite3.Connection:
        if self._database is None:
            try:
                return self._made()
            except BaseException:
                self.close()
                raise
        self._check_is_there()
        return self._database

    def _made(self) -> sqlite3.Connection:
        self._folder = StoreFolder(self._parent)
        # Its owner is one thread; which one may change between two calls.
        self._database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        for name, value in _PRAGMAS.items():
            self._database.execute(f"PRAGMA {name} = {value}")
        self._database.execute("CREATE TABLE piece (number INTEGER PRIMARY KEY, data BLOB NOT NULL)")
        self._inode = self._path.stat().st_ino
        return self._database

    def _check_is_there(self) -> None:
        """Detect that the file is missing: one that another process has deleted or replaced could still be read and
        grow, unseen.
        """
        try:
            inode = self._path.stat().st_ino
        except OSError as error:
            raise PiecesFailed(f"{self._path}: {error.strerror}") from error
        if inode != self._inode:
            raise PiecesFailed(f"{self._path} was replaced")

    @property
    def _path(self) -> Path:
        assert self._folder is not None
        return self._folder.path / "pieces.sqlite"


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, OSError) or getattr(error, "sqlite_errorcode", None) in _REFUSALS


def _put(database: sqlite3.Connection, pieces: Mapping[int, bytes | None]) -> None:
    for number, data in pieces.items():
        if data is None:
            database.execute("DELETE FROM piece WHERE number = ?", (number,))
        else:
            database.execute("INSERT OR REPLACE INTO piece VALUES (?, ?)", (number, data))


WAITING_SHARE = 8
"""At most an eighth of memory for changes of partitions in the file, until they are written together."""


class SpillableStore:
    """A ``ViewStore``. Blocks in memory never exceed ``memory_bytes``, changed ones and waiting changes included.

    Changes of a partition in the file are appended to it there: its block is neither read nor written. A block that is
    larger than memory stays in the file, and is in memory only while it is read. A removed file that is missing is
    reported at the next query for the partition, if that is not in memory.
    """

    def __init__(self, folder: Path, *, memory_bytes: int, waiting_bytes_max: int | None = None) -> None:
        """``waiting_bytes_max``: of the memory, the part for changes of partitions in the file; None: an eighth."""
        self._limit = memory_bytes
        self._memory = MemoryStore()
        self._recent: OrderedDict[str, None] = OrderedDict()
        """Partitions in memory, the least recently used first."""
        self._unsaved: set[str] = set()
        """Of these, those whose rows the file does not have."""
        waiting = memory_bytes // WAITING_SHARE if waiting_bytes_max is None else waiting_bytes_max
        self._file = Journals(SpillFile(folder), waiting_bytes_max=waiting)

    def contains(self, partition: str) -> bool:
        return partition in self._recent or partition in self._file.partitions

    def rows(self, partition: str) -> bytes | None:
        if partition in self._recent:
            self._recent.move_to_end(partition)
            return self._memory.rows(partition)
        if partition not in self._file.partitions:
            return None
        with self._whole_or_forgotten(partition):
            block = self._file.read(partition)
            with suppress(FullStore):  # what cannot give way stays in memory, and this one in the file
                self._keep(partition, block)
            return block

    def load(self, partition: str, block: bytes) -> None:
        self.forget([partition])
        with self._whole_or_forgotten(partition):
            self._place(partition, block)

    def add(self, partition: str, block: bytes) -> None:
        if not block:
            return
        with self._whole_or_forgotten(partition):
            if self._stays_in_memory(partition, growth=len(block)):
                self._memory.add(partition, block)
                self._unsaved.add(partition)
            else:
                self._file.append(partition, added_rows(block))
                self._free_memory()

    def remove(self, partition: str, names: Collection[str], position: int) -> bool:
        if not names:
            return True
        with self._whole_or_forgotten(partition):
            if self._stays_in_memory(partition):
                self._unsaved.add(partition)
                return self._memory.remove(partition, names, position)
            self._file.append(partition, removed_rows(names, position), is_removal=True)
            self._free_memory()
            return True

    def purge(self, partition: str, floor: int) -> None:
        if not self.contains(partition):
            return
        with self._whole_or_forgotten(partition):
            if self._stays_in_memory(partition):
                self._memory.purge(partition, floor)
                self._unsaved.add(partition)
            else:
                self._file.purge(partition, floor)

    def forget(self, partitions: Iterable[str] | None = None) -> None:
        for partition in list(self.partitions()) if partitions is None else partitions:
            self._leave_memory(partition)
            self._file.forget(partition)

    def partitions(self) -> Collection[str]:
        return self._recent.keys() | self._file.partitions

    def statistics(self) -> StoreStatistics:
        return StoreStatistics(
            partitions=len(self.partitions()),
            memory_bytes=self._memory_bytes,
            disk_bytes=self._file.disk_bytes,
            spilled=self._file.written,
            restored=self._file.read_back,
        )

    def close(self) -> None:
        self._memory.close()
        self._recent.clear()
        self._unsaved.clear()
        self._file.close()

    @contextmanager
    def _whole_or_forgotten(self, partition: str) -> Iterator[None]:
        """If the file fails a call about a partition, forget the partition, whatever was done."""
        try:
            yield
        except DamagedStore as damage:
            damaged = damage.partitions or frozenset()
            self._unsaved |= damaged & self._recent.keys()
            concerned = (damaged - self._recent.keys()) | {partition}
            self.forget(concerned)
            raise type(damage)(str(damage), partitions=concerned) from damage

    def _place(self, partition: str, block: bytes) -> None:
        """Store this block wherever there is room for it."""
        if len(block) > self._limit:
            self._file.write(partition, block)
        else:
            self._keep(partition, block)
            self._unsaved.add(partition)

    def _keep(self, partition: str, block: bytes) -> None:
        """Keep the block in memory, unless it is larger than all of it."""
        if len(block) <= self._limit:
            self._free_memory(len(block))
            self._memory.load(partition, block)
            self._recent[partition] = None

    def _stays_in_memory(self, partition: str, *, growth: int = 0) -> bool:
        """Return whether a stored partition is in memory, and has room to grow there. Otherwise it is in the file."""
        if partition not in self._recent:
            return False
        self._recent.move_to_end(partition)
        if self._memory.size(partition) + growth > self._limit:
            self._spill(partition)
            return False
        self._free_memory(growth, sparing=partition)
        return True

    @property
    def _memory_bytes(self) -> int:
        return self._memory.memory_bytes + self._file.memory_bytes

    def _free_memory(self, size: int = 0, *, sparing: str | None = None) -> None:
        """Make room for a block of a size that fits, beside a partition that remains."""
        while self._memory_bytes + size > self._limit:
            oldest = next(iter(self._recent), sparing)
            if oldest is None or oldest == sparing:  # the last one that is there: only what waits can give way
                self._file.flush()
            else:
                self._spill(oldest)

    def _spill(self, partition: str) -> None:
        if partition in self._unsaved:
            block = self._memory.rows(partition)
            assert block is not None
            self._file.write(partition, block)
        self._leave_memory(partition)

    def _leave_memory(self, partition: str) -> None:
        self._memory.forget([partition])
        self._recent.pop(partition, None)
        self._unsaved.discard(partition)
