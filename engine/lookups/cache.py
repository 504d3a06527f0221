"""Cache of this process's lookups, shared by its tasks. A block at a position never changes.

Bounded in bytes; the least recently used blocks are evicted first.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping

LogPosition = tuple[str, int, str]
"""The URL of a table, a position of its log, and the hash there."""

_ENTRY_BYTES = 200
"""Approximate size of an entry in addition to its block."""


class BlockCache:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks: OrderedDict[tuple[LogPosition, str], bytes] = OrderedDict()
        self.bytes = 0

    def found(self, log: LogPosition, partitions: Iterable[str]) -> dict[str, bytes]:
        """Return the cached blocks of these partitions, by partition."""
        with self._lock:
            found: dict[str, bytes] = {}
            for partition in partitions:
                block = self._blocks.get((log, partition))
                if block is not None:
                    self._blocks.move_to_end((log, partition))
                    found[partition] = block
            return found

    def keep(self, log: LogPosition, blocks: Mapping[str, bytes], *, limit_bytes: int) -> None:
        """Add these blocks, and evict until at most ``limit_bytes`` are cached."""
        with self._lock:
            for partition, block in blocks.items():
                self._drop((log, partition))
                if len(block) + _ENTRY_BYTES > limit_bytes:
                    continue  # all else would go for it
                self._blocks[log, partition] = block
                self.bytes += len(block) + _ENTRY_BYTES
            while self.bytes > limit_bytes:
                self._drop(next(iter(self._blocks)))

    def _drop(self, key: tuple[LogPosition, str]) -> None:
        block = self._blocks.pop(key, None)
        if block is not None:
            self.bytes -= len(block) + _ENTRY_BYTES
