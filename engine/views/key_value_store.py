"""Rows one by one in RocksDB: a file that comes or goes touches its own key, whatever else its partition holds."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from tallymark.engine.views.block import HEAD_BYTES, cut_rows, mark_removed, without_removed
from tallymark.engine.views.rocks import PREFIX_BYTES, Rocks, RocksFailed
from tallymark.engine.views.store import DamagedStore, FullStore, StoreStatistics


@dataclass(slots=True)
class _Held:
    """What is known of a partition in memory: how its keys begin, and what its rows have to come to.

    Of an iteration that ends early, or skips what it cannot read, or finds an older row, the sums would not be these.
    """

    prefix: bytes
    """A number that no other partition had, nor this one before: rows that could not be deleted are seen by nobody."""
    count: int = 0
    checksum: int = 0
    """Of all rows, in whatever order."""

    def count_in(self, row: bytes) -> None:
        self.count += 1
        self.checksum += crc32(row)

    def count_out(self, row: bytes) -> None:
        self.count -= 1
        self.checksum -= crc32(row)

    def key(self, row: bytes) -> bytes:
        return self.prefix + row[HEAD_BYTES:]

    def agrees(self, rows: list[bytes]) -> bool:
        return len(rows) == self.count and sum(map(crc32, rows)) == self.checksum


class KeyValueStore:
    """A ``ViewStore``. RocksDB keeps within ``memory_bytes``: what it has written lately, and what it has read.

    A key is the partition's number and the file's name; its value is the head of the packed row.
    """

    def __init__(self, folder: Path, *, memory_bytes: int) -> None:
        """Raises MissingExtra where ``rocksdict`` is not installed."""
        self._rocks = Rocks(folder, memory_bytes=memory_bytes)
        self._held: dict[str, _Held] = {}
        self._slots = 0
        self._restored = 0

    def holds(self, partition: str) -> bool:
        return partition in self._held

    def rows(self, partition: str) -> bytes | None:
        held = self._held.get(partition)
        if held is None:
            return None
        with self._whole_or_forgotten(partition):
            rows = self._read(held)
        self._restored += 1
        return b"".join(rows)

    def load(self, partition: str, block: bytes) -> None:
        self.forget([partition])
        self._slots += 1
        self._held[partition] = _Held(self._slots.to_bytes(PREFIX_BYTES))
        self.add(partition, block)

    def add(self, partition: str, block: bytes) -> None:
        held = self._held[partition]
        with self._writing(partition) as changes:
            for row in {row[HEAD_BYTES:]: row for row in cut_rows(block)}.values():
                changes[held.key(row)] = row[:HEAD_BYTES]
                held.count_in(row)

    def remove(self, partition: str, names: Collection[str], position: int) -> bool:
        held = self._held[partition]
        with self._writing(partition) as changes:
            before = [self._row(held, name) for name in names]
            after = [_removed(row, name, position) for row, name in zip(before, names, strict=True)]
            if None in after:
                return False
            for row in filter(None, before):
                held.count_out(row)
            for row in filter(None, after):
                changes[held.key(row)] = row[:HEAD_BYTES]
                held.count_in(row)
        return True

    def purge(self, partition: str, floor: int) -> None:
        held = self._held.get(partition)
        if held is None:
            return
        with self._writing(partition) as changes:
            for row in self._read(held):
                if not without_removed(row, floor):
                    changes[held.key(row)] = None
                    held.count_out(row)

    def forget(self, partitions: Iterable[str] | None = None) -> None:
        if partitions is None:
            self.close()
            return
        for partition in partitions:
            held = self._held.pop(partition, None)
            if held is not None and held.count:
                self._rocks.forget(held.prefix)

    def partitions(self) -> Collection[str]:
        return self._held.keys()

    def statistics(self) -> StoreStatistics:
        return StoreStatistics(
            partitions=len(self._held),
            memory_bytes=self._rocks.memory_bytes,
            disk_bytes=self._rocks.disk_bytes,
            restored=self._restored,
        )

    def close(self) -> None:
        self._held.clear()
        self._rocks.close()

    @contextmanager
    def _writing(self, partition: str) -> Iterator[dict[bytes, bytes | None]]:
        """Changes that are written at the end of the block, all of them or none."""
        with self._whole_or_forgotten(partition):
            changes: dict[bytes, bytes | None] = {}
            yield changes
            if changes:
                self._rocks.write(changes)

    @contextmanager
    def _whole_or_forgotten(self, partition: str) -> Iterator[None]:
        """Any doubt about the database ends it, and with it what all partitions have there."""
        try:
            yield
        except RocksFailed as error:
            concerned = frozenset(self._held) | {partition}
            where = self._rocks.path
            self.close()
            if error.is_refusal:
                raise FullStore.on(where, error, partitions=concerned) from error
            raise DamagedStore(f"{where}: {error}", partitions=concerned) from error

    def _read(self, held: _Held) -> list[bytes]:
        if not held.count:
            return []
        rows = [head + key[PREFIX_BYTES:] for key, head in self._rocks.items(held.prefix)]
        if not held.agrees(rows):
            raise RocksFailed("the rows of a partition are not those that were written")
        return rows

    def _row(self, held: _Held, name: str) -> bytes | None:
        encoded = name.encode("utf-8")
        head = self._rocks.get(held.prefix + encoded)
        return None if head is None else head + encoded


def _removed(row: bytes | None, name: str, position: int) -> bytes | None:
    """The row as it is from that position on; None where there is none, or its file was removed before."""
    if row is None:
        return None
    block = bytearray(row)
    return bytes(block) if mark_removed(block, name, position) else None
