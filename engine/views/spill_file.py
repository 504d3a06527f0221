"""Pieces in an SQLite file of this process."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tallymark.engine.views.pieces import PiecesFailed
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


class SpillFile:
    """``Pieces`` in SQLite. Created by the first write; a write that its disk refuses leaves it unchanged."""

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        self._folder: StoreFolder | None = None
        self._database: sqlite3.Connection | None = None
        self._inode = 0

    @property
    def path(self) -> Path:
        return self._parent if self._folder is None else self._folder.path

    @property
    def memory_bytes(self) -> int:
        """Always 0: its mebibyte of pages is not counted."""
        return 0

    @property
    def disk_bytes(self) -> int:
        return 0 if self._folder is None else self._folder.disk_bytes

    def read(self, first: int, count: int) -> bytes:
        with self._trusted() as database:
            found = database.execute(
                "SELECT data FROM piece WHERE number BETWEEN ? AND ? ORDER BY number", (first, first + count - 1)
            ).fetchall()
        pieces = [data for (data,) in found if isinstance(data, bytes)]
        if len(pieces) != count:
            raise PiecesFailed(f"of {count} pieces that were written {len(pieces)} are there")
        return pieces[0] if count == 1 else b"".join(pieces)

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
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

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
