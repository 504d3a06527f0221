"""Blocks in an SQLite file of this process's own. A block that it gives back is the one that was last written there.

The checksums stay in memory: one beside its block would vouch for an older block too, which a lost write has left.
"""

import sqlite3
from collections.abc import Iterator, KeysView
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from tallymark.engine.views.store import DamagedStore, FullStore
from tallymark.engine.views.store_folder import StoreFolder

_PRAGMAS = {
    "page_size": 8192,  # a block of 100 files takes two of them
    "journal_mode": "MEMORY",  # a write that does not fit is taken back, and no later process reads what is here
    "synchronous": "OFF",  # for the same reason nothing has to survive a crash
    "locking_mode": "EXCLUSIVE",  # nobody else opens it
    "cache_size": -1024,  # KiB: what is asked for often lies in memory anyway, as a block
    "mmap_size": 0,  # a mapped file that somebody cuts off ends the process
    "cell_size_check": "ON",  # look at a page that was read before it is believed
}
_REFUSALS = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
"""A disk that is full, a quota or a limit of the process that is reached, a disk that has turned read-only."""


class _Untrusted(Exception):
    """What was read is not what was written."""


@dataclass(frozen=True, slots=True)
class _Place:
    slot: int
    checksum: int


class SpillFile:
    """Made when something is first written to it. Any doubt about it ends it, and the next write makes another.

    Raises, where a method says so:
        DamagedStore: it could not be trusted; ``partitions`` are all that it held. It is empty now.
        FullStore: its disk took no more; it holds what it held before.
    """

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        self._folder: StoreFolder | None = None
        self._database: sqlite3.Connection | None = None
        self._inode = 0
        self._places: dict[str, _Place] = {}
        self._slots = 0
        self.written = 0
        """Blocks."""
        self.read_back = 0

    @property
    def partitions(self) -> KeysView[str]:
        return self._places.keys()

    @property
    def disk_bytes(self) -> int:
        return 0 if self._folder is None else self._folder.disk_bytes

    def read(self, partition: str) -> bytes:
        """The block of a partition that is here. Raises DamagedStore."""
        place = self._places[partition]
        with self._trusted() as database:
            found = database.execute("SELECT rows FROM block WHERE slot = ?", (place.slot,)).fetchone()
            if found is None:
                raise _Untrusted(f"the block of partition {partition!r} is gone")
            (block,) = found
            if not isinstance(block, bytes) or crc32(block) != place.checksum:
                raise _Untrusted(f"the block of partition {partition!r} is not the one that was written")
        self.read_back += 1
        return block

    def write(self, partition: str, block: bytes) -> None:
        """In place of any block of that partition. Raises DamagedStore, FullStore."""
        before = self._places.get(partition)
        if before is None:
            self._slots += 1
        place = _Place(self._slots if before is None else before.slot, crc32(block))
        with self._trusted() as database:
            database.execute("INSERT OR REPLACE INTO block VALUES (?, ?)", (place.slot, block))
        self._places[partition] = place
        self.written += 1

    def forget(self, partition: str) -> None:
        place = self._places.pop(partition, None)
        if place is not None and self._database is not None:
            with suppress(sqlite3.Error):  # nobody knows its slot any more; the next to read or write is told
                self._database.execute("DELETE FROM block WHERE slot = ?", (place.slot,))

    def close(self) -> None:
        """It is gone. Doing so twice is fine."""
        self._places.clear()
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.close()
            self._database = None
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    @contextmanager
    def _trusted(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self._opened()
        except (sqlite3.Error, OSError, _Untrusted) as error:
            where = self._parent if self._folder is None else self._folder.path
            if _is_refusal(error):
                raise FullStore.on(where, error) from error
            lost = frozenset(self._places)
            self.close()
            raise DamagedStore(f"{where}: {error}", partitions=lost) from error

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
        self._database.execute("CREATE TABLE block (slot INTEGER PRIMARY KEY, rows BLOB NOT NULL)")
        self._inode = self._path.stat().st_ino
        return self._database

    def _check_is_there(self) -> None:
        """A file that somebody has deleted or replaced can still be read and grow, where nobody sees it."""
        try:
            inode = self._path.stat().st_ino
        except OSError as error:
            raise _Untrusted(f"{self._path}: {error.strerror}") from error
        if inode != self._inode:
            raise _Untrusted(f"{self._path} was replaced")

    @property
    def _path(self) -> Path:
        assert self._folder is not None
        return self._folder.path / "blocks.sqlite"


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, OSError) or getattr(error, "sqlite_errorcode", None) in _REFUSALS
