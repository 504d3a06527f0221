"""Partition paths of rows of which only the partition columns are known."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tallymark.engine.partitions.guard import PartitionGuard
from tallymark.engine.partitions.index import PartitionIndex
from tallymark.engine.partitions.static import StaticPartition
from tallymark.engine.tasks.table_rows import rows_in


def partition_paths(
    keys: pa.RecordBatch,
    count: int,
    *,
    schema: pa.Schema,
    partition_by: Sequence[str],
    partition: StaticPartition | None = None,
    guard: PartitionGuard | None = None,
) -> list[str]:
    """Return the path of each of ``count`` rows, by the code by which tasks assign them. ``schema`` is the table's.

    ``keys`` are the partition columns of the input. For a static partition it may lack some of them, or all, and a
    batch without columns has no number of rows.

    Raises:
        InvalidRequest: a row is not where the write may put it, or a value fits no path.
    """
    columns = tuple(partition_by)
    if not count:
        return []
    if not columns:
        return [""] * count
    if partition is not None and not keys.num_columns:
        return [partition.path] * count
    whole = pa.schema([schema.field(name) for name in columns])
    keys = rows_in(whole, keys, partition_by=columns, partition=partition)
    index = PartitionIndex(columns, guard)
    numbers: list[Any] = index.place(keys).numbers.to_pylist()  # of no nulls
    return [index.path(number) for number in numbers]
