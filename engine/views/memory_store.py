"""Store of all blocks in memory: about 115 bytes per file."""

from collections.abc import Collection, Iterable

from tallymark.engine.views.block import mark_all_removed, without_removed
from tallymark.engine.views.store import StoreStatistics

COPIED_BYTES_MAX = 32 * 1024
"""Rows are appended at once to blocks up to this size, about 280 files: a copy takes a microsecond, as packing a row
does. Kept beside such blocks and appended later, they would leave holes in the heap half as large as all blocks.
"""

ADDED_MAX = 32
"""Runs of rows that wait beside a larger block for a query of the partition. Beyond, a partition that many commits add
to and no query reads is joined.
"""


class MemoryStore:
    """A ``ViewStore``."""

    def __init__(self) -> None:
        self._blocks: dict[str, bytes] = {}
        self._added: dict[str, list[bytes]] = {}
        """Rows added to a large partition since its block was last joined: adding rows copies no others."""
        self._bytes = 0

    @property
    def memory_bytes(self) -> int:
        """Size of all blocks."""
        return self._bytes

    def size(self, partition: str) -> int:
        """Return the bytes of a stored partition."""
        return len(self._blocks[partition]) + sum(map(len, self._added.get(partition, ())))

    def contains(self, partition: str) -> bool:
        return partition in self._blocks

    def rows(self, partition: str) -> bytes | None:
        if partition in self._added:
            self._put_together(partition)
        return self._blocks.get(partition)

    def load(self, partition: str, block: bytes) -> None:
        self.forget([partition])
        self._blocks[partition] = block
        self._bytes += len(block)

    def add(self, partition: str, block: bytes) -> None:
        kept = self._blocks[partition]
        self._bytes += len(block)
        if len(kept) <= COPIED_BYTES_MAX:
            self._blocks[partition] = kept + block
            return
        added = self._added.setdefault(partition, [])
        added.append(block)
        if len(added) == ADDED_MAX:
            self._put_together(partition)

    def remove(self, partition: str, names: Collection[str], position: int) -> bool:
        if not names:
            return True
        self._put_together(partition)
        block = bytearray(self._blocks[partition])
        is_there = mark_all_removed(block, dict.fromkeys(names, position)) is None
        self._blocks[partition] = bytes(block)
        return is_there

    def purge(self, partition: str, floor: int) -> None:
        if (block := self.rows(partition)) is not None:
            self.load(partition, without_removed(block, floor))

    def forget(self, partitions: Iterable[str] | None = None) -> None:
        for partition in list(self._blocks) if partitions is None else partitions:
            if partition in self._blocks:
                self._bytes -= self.size(partition)
                del self._blocks[partition]
                self._added.pop(partition, None)

    def partitions(self) -> Collection[str]:
        return self._blocks.keys()

    def statistics(self) -> StoreStatistics:
        return StoreStatistics(partitions=len(self._blocks), memory_bytes=self._bytes)

    def close(self) -> None:
        self.forget()

    def _put_together(self, partition: str) -> None:
        self._blocks[partition] = b"".join((self._blocks[partition], *self._added.pop(partition, ())))
