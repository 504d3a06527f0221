"""Rows that wait to be encoded, gathered by partition.

Owns: how much may wait, and which partition is encoded next. Small batches are pooled and split together, so that a
batch over many partitions costs no copy of a few rows for each of them, and no waiting row keeps its whole batch alive.
"""

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tallymark.engine.partitions.index import PartitionedBatch

POOL_BYTES_MAX = 32 * 1024 * 1024
"""Arrow bytes that are split at once: enough that splitting costs little beside encoding."""


class RowBuffer:
    """Contains at most ``buffer_bytes`` and the last batch, if its user encodes what is ``due`` after every ``add``."""

    def __init__(self, *, row_group_bytes: int, buffer_bytes: int) -> None:
        self._row_group_bytes = row_group_bytes
        self._buffer_bytes = buffer_bytes
        self._pool_bytes_max = min(POOL_BYTES_MAX, row_group_bytes, buffer_bytes // 4)
        self._pool: list[PartitionedBatch] = []
        self._pool_bytes = 0
        self._rows: dict[int, list[pa.RecordBatch]] = {}
        self._bytes: defaultdict[int, int] = defaultdict(int)
        self._total = 0

    @property
    def bytes(self) -> int:
        """Arrow bytes of the waiting rows."""
        return self._total + self._pool_bytes

    def add(self, placed: PartitionedBatch) -> None:
        if len(placed.partitions) == 1 and not self._pool:
            self.append(placed.partitions[0], placed.batch)
            return
        if self._pool_bytes + placed.batch.nbytes > 2 * self._pool_bytes_max:
            self._split()
        self._pool.append(placed)
        self._pool_bytes += placed.batch.nbytes
        if self._pool_bytes >= self._pool_bytes_max:
            self._split()

    def due(self) -> int | None:
        """Return the partition to encode now: one with a full row group, or the fullest if too much waits; None if
        neither.
        """
        if not self._rows:
            return None
        fullest = max(self._rows, key=self._bytes.__getitem__)
        is_too_much = self._total + self._pool_bytes_max > self._buffer_bytes
        return fullest if is_too_much or self._bytes[fullest] >= self._row_group_bytes else None

    def remaining(self) -> tuple[int, ...]:
        """Return every partition that has rows, in the order of their first row."""
        self._split()
        return tuple(sorted(self._rows))

    def take(self, partition: int) -> pa.Table:
        """Return and remove the waiting rows of a partition, in the order of their arrival."""
        self._total -= self._bytes.pop(partition)
        return pa.Table.from_batches(self._rows.pop(partition))

    def append(self, partition: int, rows: pa.RecordBatch) -> None:
        """Append rows of one partition: they precede those that are still in the pool of ``add``."""
        self._rows.setdefault(partition, []).append(rows)
        self._bytes[partition] += rows.nbytes
        self._total += rows.nbytes

    def _split(self) -> None:
        if not self._pool:
            return
        numbers = pa.concat_arrays([placed.numbers for placed in self._pool])
        pool = pa.Table.from_batches([placed.batch for placed in self._pool]).combine_chunks()
        self._pool, self._pool_bytes = [], 0
        order = pc.array_sort_indices(numbers)  # stable: rows of one partition stay in order
        start = 0
        for partition, count in sorted(value_counts(numbers).items()):
            rows = pool.take(order.slice(start, count)).combine_chunks()
            start += count
            for batch in rows.to_batches():
                self.append(partition, batch)


def value_counts(values: Any) -> dict[Any, int]:
    """Return how many rows each value has, in the order of their first rows."""
    counted: Any = pc.value_counts(values)
    return dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True))
