"""Journals of partitions on a local disk: rows added and names of files removed, in order.

A read returns what was written, or fails.
"""

import struct
from collections.abc import Collection, Iterator, KeysView
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from zlib import crc32

from tallymark.engine.errors import CorruptObject
from tallymark.engine.views.block import mark_all_removed, without_removed
from tallymark.engine.views.pieces import Pieces, PiecesFailed
from tallymark.engine.views.store import DamagedStore, FullStore

_RECORD = struct.Struct("<BI")
_POSITION = struct.Struct("<I")
_LENGTH = struct.Struct("<H")
_ADDED, _REMOVED = 1, 2


def added_rows(block: bytes) -> bytes:
    """Return a record: these rows are there from now on."""
    return _RECORD.pack(_ADDED, len(block)) + block


def removed_rows(names: Collection[str], position: int) -> bytes:
    """Return a record: the files of these names were removed at this position."""
    encoded = [name.encode("utf-8") for name in names]
    names_part = b"".join(part for name in encoded for part in (_LENGTH.pack(len(name)), name))
    return _RECORD.pack(_REMOVED, _POSITION.size + len(names_part)) + _POSITION.pack(position) + names_part


def block_of(journal: bytes) -> bytes:
    """Return the rows that a journal comes to, in the order in which they came.

    Raises CorruptObject where a file went that had not come, or had gone before. The bytes are those that were written.
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
    """As ``block_of``, without the rows of files that were removed at ``floor`` or before."""
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
"""Some 280 files. A partition that is larger lies in several pieces, of which a commit never touches but the last."""

TAIL_COUNT_MAX = 32
"""Small pieces at the end of a journal. Then they become one: it takes as long as one look-up, every 32 commits."""

FOLDED_BYTES_MIN = 4 * 1024
"""Names of removed files in a journal: if they are more than this and a quarter of it, its rows are rewritten."""

_WAITING_OVERHEAD_BYTES = 128
"""What a partition's records take beside themselves while they wait."""

_PIECES_MAX = 1 << 24
"""Of a journal: half a terabyte."""


@dataclass(slots=True)
class _Journal:
    """What is known of one in memory: where it lies, and what it has to come to."""

    first: int
    """The number of its first piece. No other had it: pieces that could not be deleted are never read."""
    count: int = 0
    tail: int = 0
    """Pieces before this one are full."""
    size: int = 0
    checksum: int = 0
    removed_rows: int = 0
    """Bytes of records of files that went."""


class Journals:
    """Of one thread. Up to ``waiting_bytes_max`` of what comes waits in memory, until it is written at once.

    Raises, where a method says so:
        DamagedStore: it could not be trusted; ``partitions`` are those that are lost, and no more held.
        FullStore: its disk took no more. What it held before it holds, but for ``partitions``.
    """

    def __init__(self, pieces: Pieces, *, waiting_bytes_max: int = 0) -> None:
        self._pieces = pieces
        self._journals: dict[str, _Journal] = {}
        self._made = 0
        self._waiting: dict[str, bytearray] = {}
        """Records that have yet to be written, one after the other; grown in place, since a hot partition has many."""
        self._waiting_max = waiting_bytes_max
        self.waiting_bytes = 0
        self.written = 0
        """Partitions, whole."""
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
        """Return the rows of a partition that is here. Raises DamagedStore."""
        try:
            block = block_of(self._read(partition))
        except (CorruptObject, PiecesFailed) as error:
            raise self._lost(error, partition) from error
        self.read_back += 1
        return block

    def write(self, partition: str, block: bytes) -> None:
        """Write these rows in place of any of that partition. Raises DamagedStore, FullStore."""
        with self._trusted(partition):
            self._write(partition, block)

    def append(self, partition: str, record: bytes, *, is_removal: bool = False) -> None:
        """Append a record for a partition that is here. Raises DamagedStore, FullStore."""
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
        """Let nothing wait. Raises DamagedStore, FullStore."""
        with self._trusted(None):
            self._flush()

    def forget(self, partition: str) -> None:
        self._wait_no_more(partition)
        journal = self._journals.pop(partition, None)
        if journal is not None and journal.count:
            with suppress(PiecesFailed):  # its pieces are unknown now; the next read or write raises
                self._pieces.write(dict.fromkeys(range(journal.first, journal.first + journal.count)))

    def close(self) -> None:
        """All is gone. Doing so twice is fine."""
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
        """One by one: what is not written when this fails goes on waiting."""
        for partition, records in list(self._waiting.items()):
            journal, pieces = self._appended(self._journals[partition], bytes(records))
            self._pieces.write(pieces)
            self._journals[partition] = journal
            self._wait_no_more(partition)

    def _appended(self, journal: _Journal, data: bytes) -> tuple[_Journal, dict[int, bytes | None]]:
        """Return the journal with that at its end, and what is to be written for it."""
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
        """Return the records of a partition, if some did."""
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
        """Give up what is not trusted any more; return what to report of it."""
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
