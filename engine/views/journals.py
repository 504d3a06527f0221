"""Journals of partitions on a local disk: rows added and names of files removed, in order.

A read returns what was written, or fails.
"""

import struct
from collections.abc import Collection, Iterable, Iterator, KeysView, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from zlib import crc32

from tallymark.engine.errors import CorruptObject
from tallymark.engine.views.block import mark_all_removed, without_removed
from tallymark.engine.views.store import DamagedStore, FullStore
from tallymark.engine.views.store_folder import StoreFolder


class PiecesFailed(Exception):
    """The bytes read are not those written; or the disk accepted no more."""

    def __init__(self, reason: str, *, is_refusal: bool = False, is_over: bool = True) -> None:
        """``is_refusal``: for lack of space or permission on its disk. ``is_over``: nothing stored can be used any
        more.
        """
        super().__init__(reason)
        self.is_refusal = is_refusal
        self.is_over = is_over


class Pieces(Protocol):
    """Created by the first write; after ``close`` the next write creates another.

    Any method but ``close`` may raise PiecesFailed.
    """

    @property
    def path(self) -> Path:
        """The folder of its files, which need not exist yet."""
        ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def disk_bytes(self) -> int: ...

    def read(self, first: int, count: int) -> bytes:
        """Return this many pieces from a number on, joined.

        Raises PiecesFailed where one of them is missing.
        """
        ...

    def write(self, pieces: Mapping[int, bytes | None]) -> None:
        """Write all of these or none, in place of earlier bytes of their numbers; None deletes."""
        ...

    def close(self) -> None:
        """Delete it; idempotent."""
        ...


class DiskPieces:
    """Folder of a ``Pieces`` of this process: made with the first write, deleted by ``close``."""

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        self._folder: StoreFolder | None = None

    @property
    def path(self) -> Path:
        return self._parent if self._folder is None else self._folder.path

    @property
    def disk_bytes(self) -> int:
        return 0 if self._folder is None else self._folder.disk_bytes

    def close(self) -> None:
        """Delete it; idempotent."""
        if self._folder is not None:
            self._folder.remove()
            self._folder = None


def joined(found: Iterable[object], count: int) -> bytes:
    """Return the pieces that were found. Raises PiecesFailed where fewer than ``count`` are there."""
    pieces = [data for data in found if isinstance(data, bytes)]
    if len(pieces) != count:
        raise PiecesFailed(f"of {count} pieces that were written {len(pieces)} are there")
    return pieces[0] if count == 1 else b"".join(pieces)


_RECORD = struct.Struct("<BI")
_POSITION = struct.Struct("<I")
_LENGTH = struct.Struct("<H")
_ADDED, _REMOVED = 1, 2


def added_rows(block: bytes) -> bytes:
    """Return a record that adds these rows."""
    return _RECORD.pack(_ADDED, len(block)) + block


def removed_rows(names: Collection[str], position: int) -> bytes:
    """Return a record that the files of these names were removed at this position."""
    encoded = [name.encode("utf-8") for name in names]
    names_part = b"".join(part for name in encoded for part in (_LENGTH.pack(len(name)), name))
    return _RECORD.pack(_REMOVED, _POSITION.size + len(names_part)) + _POSITION.pack(position) + names_part


def block_of(journal: bytes) -> bytes:
    """Return the rows that result from a journal, in the order in which they were added.

    Raises CorruptObject where a removed file is missing or was removed before. The bytes are those that were written.
    """
    rows: list[bytes] = []
    removals: dict[str, int] = {}
    at = 0
    while at < len(journal):
        kind, length = _RECORD.unpack_from(journal, at)
        start, at = at + _RECORD.size, at + _RECORD.size + length
        if kind == _ADDED:
            rows.append(journal[start:at])
        else:
            _gather(journal, start, at, removals)
    block = rows[0] if len(rows) == 1 else b"".join(rows)
    if not removals:
        return block
    changed = bytearray(block)
    absent = mark_all_removed(changed, removals)
    if absent is not None:
        raise CorruptObject(f"{absent}, which position {removals[absent]} removes, is not there")
    return bytes(changed)


def kept_block(journal: bytes, floor: int) -> bytes:
    """Return the same as ``block_of`` without the rows of files that were removed at ``floor`` or before."""
    return without_removed(block_of(journal), floor)


def _gather(journal: bytes, start: int, end: int, removals: dict[str, int]) -> None:
    (position,) = _POSITION.unpack_from(journal, start)
    at = start + _POSITION.size
    while at < end:
        (length,) = _LENGTH.unpack_from(journal, at)
        start, at = at + _LENGTH.size, at + _LENGTH.size + length
        name = journal[start:at].decode("utf-8")
        if name in removals:
            raise CorruptObject(f"position {position} removes {name}, which position {removals[name]} has removed")
        removals[name] = position


PIECE_BYTES = 32 * 1024
"""About 280 files. A larger partition is in several pieces, of which a commit changes only the last."""

TAIL_COUNT_MAX = 32
"""Maximum number of small pieces at the end of a journal. Joining them takes as long as one lookup, every 32
commits.
"""

FOLDED_BYTES_MIN = 4 * 1024
"""If the names of removed files in a journal take more than this and a quarter of it, its rows are rewritten."""

_WAITING_OVERHEAD_BYTES = 128
"""Memory of a partition's waiting records beside their bytes."""

_PIECES_MAX = 1 << 24
"""Maximum number of pieces of a journal: half a terabyte."""


@dataclass(slots=True)
class _Journal:
    """Facts of one journal that are kept in memory."""

    first: int
    """Number of its first piece, never used before: pieces that could not be deleted are never read."""
    count: int = 0
    tail: int = 0
    """Pieces before this one are full."""
    size: int = 0
    checksum: int = 0
    removed_rows: int = 0
    """Bytes of records of removed files."""


class Journals:
    """Owned by one thread. Up to ``waiting_bytes_max`` of new records wait in memory, and are written together.

    Raises, where a method's docstring lists it:
        DamagedStore: it cannot be trusted; ``partitions`` are lost and no longer stored.
        FullStore: its disk accepts no more. It keeps what it had, except for ``partitions``.
    """

    def __init__(self, pieces: Pieces, *, waiting_bytes_max: int = 0) -> None:
        self._pieces = pieces
        self._journals: dict[str, _Journal] = {}
        self._made = 0
        self._waiting: dict[str, bytearray] = {}
        """Records to be written, concatenated; extended in place, since a hot partition has many."""
        self._waiting_max = waiting_bytes_max
        self.waiting_bytes = 0
        self.written = 0
        """Number of partitions written as a whole."""
        self.read_back = 0

    @property
    def partitions(self) -> KeysView[str]:
        return self._journals.keys()

    @property
    def memory_bytes(self) -> int:
        return self._pieces.memory_bytes + self.waiting_bytes

    @property
    def disk_bytes(self) -> int:
        return self._pieces.disk_bytes

    def read(self, partition: str) -> bytes:
        """Return the rows of a stored partition. Raises DamagedStore."""
        try:
            block = block_of(self._read(partition))
        except (CorruptObject, PiecesFailed) as error:
            raise self._lost(error, partition) from error
        self.read_back += 1
        return block

    def write(self, partition: str, block: bytes) -> None:
        """Replace the rows of a partition by these. Raises DamagedStore, FullStore."""
        with self._trusted(partition):
            self._write(partition, block)

    def append(self, partition: str, record: bytes, *, is_removal: bool = False) -> None:
        """Append a record to a stored partition. Raises DamagedStore, FullStore."""
        journal = self._journals[partition]
        self._wait(partition, record)
        if is_removal:
            journal.removed_rows += len(record)
        with self._trusted(partition):
            if journal.removed_rows > max(FOLDED_BYTES_MIN, journal.size // 4):
                self._write(partition, block_of(self._read(partition)))
            elif self.waiting_bytes > self._waiting_max:
                self._flush()

    def purge(self, partition: str, floor: int) -> None:
        """Drop the rows of files of a partition that were removed at ``floor`` or before. Raises as ``append``."""
        with self._trusted(partition):
            self._write(partition, kept_block(self._read(partition), floor))

    def flush(self) -> None:
        """Write all waiting records. Raises DamagedStore, FullStore."""
        with self._trusted(None):
            self._flush()

    def forget(self, partition: str) -> None:
        self._wait_no_more(partition)
        journal = self._journals.pop(partition, None)
        if journal is not None and journal.count:
            with suppress(PiecesFailed):  # its pieces are unknown now; the next read or write raises
                self._pieces.write(dict.fromkeys(range(journal.first, journal.first + journal.count)))

    def close(self) -> None:
        """Delete everything. Idempotent."""
        self._journals.clear()
        self._waiting.clear()
        self.waiting_bytes = 0
        self._pieces.close()

    def _read(self, partition: str) -> bytes:
        journal = self._journals[partition]
        data = self._pieces.read(journal.first, journal.count) if journal.count else b""
        if len(data) != journal.size or crc32(data) != journal.checksum:
            raise PiecesFailed(f"the rows of partition {partition!r} are not those that were written")
        return data + self._waiting[partition] if partition in self._waiting else data

    def _write(self, partition: str, block: bytes) -> None:
        before = self._journals.get(partition)
        if before is None:
            self._made += 1
            before = _Journal(self._made * _PIECES_MAX)
        journal, pieces = self._appended(_Journal(before.first), added_rows(block) if block else b"")
        for index in range(journal.count, before.count):
            pieces[journal.first + index] = None
        self._pieces.write(pieces)
        self._journals[partition] = journal
        self._wait_no_more(partition)
        self.written += 1

    def _flush(self) -> None:
        """Write the waiting records partition by partition: those not written when it fails remain waiting."""
        for partition, records in list(self._waiting.items()):
            journal, pieces = self._appended(self._journals[partition], bytes(records))
            self._pieces.write(pieces)
            self._journals[partition] = journal
            self._wait_no_more(partition)

    def _appended(self, journal: _Journal, data: bytes) -> tuple[_Journal, dict[int, bytes | None]]:
        """Return the journal with that at its end, and the bytes to be written for it."""
        start, tail, rest = journal.count, journal.tail, data
        if start - tail >= TAIL_COUNT_MAX:
            rest = self._pieces.read(journal.first + tail, start - tail) + data
            start = tail
        cut = [rest[at : at + PIECE_BYTES] for at in range(0, len(rest), PIECE_BYTES)]
        count = start + len(cut)
        pieces: dict[int, bytes | None] = {journal.first + index: None for index in range(count, journal.count)}
        pieces |= enumerate(cut, journal.first + start)
        if start == tail and cut:
            tail = count if len(cut[-1]) == PIECE_BYTES else count - 1
        after = _Journal(
            journal.first, count, tail, journal.size + len(data), crc32(data, journal.checksum), journal.removed_rows
        )
        return after, pieces

    def _wait(self, partition: str, record: bytes) -> None:
        if partition not in self._waiting:
            self._waiting[partition] = bytearray()
            self.waiting_bytes += _WAITING_OVERHEAD_BYTES
        self._waiting[partition] += record
        self.waiting_bytes += len(record)

    def _wait_no_more(self, partition: str) -> None:
        """Drop the waiting records of a partition, if there are any."""
        records = self._waiting.pop(partition, None)
        if records is not None:
            self.waiting_bytes -= len(records) + _WAITING_OVERHEAD_BYTES

    @contextmanager
    def _trusted(self, partition: str | None) -> Iterator[None]:
        try:
            yield
        except (CorruptObject, PiecesFailed) as error:
            raise self._lost(error, partition) from error

    def _lost(self, error: CorruptObject | PiecesFailed, partition: str | None) -> DamagedStore:
        """Drop what can no longer be trusted; return the error to raise."""
        if isinstance(error, CorruptObject):
            assert partition is not None, "nothing is put together of none"
            self.forget(partition)
            return DamagedStore(f"partition {partition!r}: {error}", partitions=frozenset({partition}))
        where, lost = self._pieces.path, frozenset[str]()
        if error.is_over:
            lost = frozenset(self._journals)
            self.close()
        if error.is_refusal:
            return FullStore.on(where, error, partitions=lost)
        return DamagedStore(f"{where}: {error}", partitions=lost)
