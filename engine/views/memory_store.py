"""All blocks in memory: about 130 bytes a file."""

from collections.abc import Collection, Iterable

from tallymark.engine.views.block import mark_removed, without_removed
from tallymark.engine.views.store import StoreStatistics


class MemoryStore:
    """A ``ViewStore``."""

    def __init__(self) -> None:
        self._blocks: dict[str, bytes | bytearray] = {}
        """``bytes`` since it was last read, which costs no copy then; a ``bytearray`` since it was last changed."""
        self._bytes = 0

    @property
    def memory_bytes(self) -> int:
        """Of all blocks."""
        return self._bytes

    def size(self, partition: str) -> int:
        """Bytes of a partition that is held."""
        return len(self._blocks[partition])

    def holds(self, partition: str) -> bool:
        return partition in self._blocks

    def rows(self, partition: str) -> bytes | None:
        block = self._blocks.get(partition)
        if isinstance(block, bytearray):
            block = self._blocks[partition] = bytes(block)
        return block

    def load(self, partition: str, block: bytes) -> None:
        self._bytes += len(block) - len(self._blocks.get(partition, b""))
        self._blocks[partition] = block

    def add(self, partition: str, block: bytes) -> None:
        held = self._opened(partition)
        held += block
        self._bytes += len(block)

    def remove(self, partition: str, names: Collection[str], position: int) -> bool:
        if not names:
            return True
        block = self._opened(partition)
        return all(mark_removed(block, name, position) for name in names)

    def purge(self, partition: str, floor: int) -> None:
        if partition in self._blocks:
            self.load(partition, without_removed(self._blocks[partition], floor))

    def forget(self, partitions: Iterable[str] | None = None) -> None:
        for partition in list(self._blocks) if partitions is None else partitions:
            self._bytes -= len(self._blocks.pop(partition, b""))

    def partitions(self) -> Collection[str]:
        return self._blocks.keys()

    def statistics(self) -> StoreStatistics:
        return StoreStatistics(partitions=len(self._blocks), memory_bytes=self._bytes)

    def close(self) -> None:
        self.forget()

    def _opened(self, partition: str) -> bytearray:
        """The block, to be changed in place."""
        block = self._blocks[partition]
        if isinstance(block, bytes):
            block = self._blocks[partition] = bytearray(block)
        return block
