"""Partition index of a batch: a number per row, in order of first appearance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tallymark.engine.partitions.guard import PartitionGuard
from tallymark.engine.partitions.path import PartitionValue, partition_path


@dataclass(frozen=True, slots=True)
class PartitionedBatch:
    """A batch, and the partition of each of its rows."""

    batch: pa.RecordBatch
    numbers: "pa.Array[Any]"
    """int32, one for each row."""
    partitions: tuple[int, ...]
    """Each number once, in the order of its first row."""


class PartitionIndex:
    """Numbers the partitions of a task. Grows with their count, not with rows."""

    def __init__(self, columns: Sequence[str], guard: PartitionGuard | None = None) -> None:
        self._columns = tuple(columns)
        self._guard = guard
        self._numbers: dict[tuple[PartitionValue, ...], int] = {}
        self._paths: list[str] = []

    def path(self, number: int) -> str:
        return self._paths[number]

    def place(self, batch: pa.RecordBatch) -> PartitionedBatch:
        """Assign a number to each row of a batch that has rows.

        Raises:
            InvalidRequest: a value that no path can carry, or a partition that the guard does not allow.
        """
        keys = batch.select(self._columns)
        codes = _codes(keys)
        firsts = keys.take(_first_rows(codes))
        values = zip(*(column.to_pylist() for column in firsts.columns), strict=True) if self._columns else [()]
        partitions = [self._number(value) for value in values]
        return PartitionedBatch(batch, pa.array(partitions, pa.int32()).take(codes), tuple(partitions))

    def _number(self, values: tuple[PartitionValue, ...]) -> int:
        number = self._numbers.get(values)
        if number is None:
            path = partition_path(self._columns, values)
            if self._guard is not None:
                self._guard.check(path)
            self._paths.append(path)
            number = self._numbers[values] = len(self._numbers)
        return number


def _codes(keys: pa.RecordBatch) -> "pa.Array[Any]":
    """Return a code per row, equal for equal rows, counting from 0 in the order of first appearance."""
    codes = pa.nulls(keys.num_rows, pa.int32()).fill_null(0)
    for column in keys.columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        pairs = pc.add(pc.multiply(codes.cast(pa.int64()), len(encoded.dictionary)), encoded.indices)
        codes = pairs.dictionary_encode().indices
    return codes


def _first_rows(codes: "pa.Array[Any]") -> "pa.Array[Any]":
    """Return the row at which each code appears first: where the greatest code so far grows."""
    greatest = pc.cumulative_max(codes)
    grows = pc.not_equal(greatest[1:], greatest[:-1])
    return pc.indices_nonzero(pa.concat_arrays([pa.array([True]), grows]))
