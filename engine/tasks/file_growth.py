"""How far a file may grow: when it is full, and how many rows of a table the next row group takes."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from tallymark.engine.tasks.footer_size import FooterSize

LARGEST = 1.25
"""No file is larger than this many times the maximum, whatever its rows come to, unless one row alone is, or what the
footer has to tell of its columns."""

FOR_ROWS = 1.2
"""Of that, what rows may take with what Parquet tells of them; the rest is for what nobody has counted."""

PLANNED_FULL = 1.125
"""A file of which a plan knows is full beyond this: its rows may take an eighth more than was expected, so that no
second, tiny file takes the rest."""

_PARQUET_INT_BYTES = 4
"""The least that Parquet takes for an integer that it cannot pack."""


@dataclass(frozen=True, slots=True)
class FileGrowth:
    max_file_bytes: int
    row_group_bytes: int
    """Arrow bytes."""
    footer: FooterSize

    def is_full(self, encoded_bytes: int, *, is_planned: bool) -> bool:
        """Whether a file of so many bytes takes no further row group."""
        return encoded_bytes >= self.max_file_bytes * (PLANNED_FULL if is_planned else 1)

    def next_rows(self, rows: pa.Table, encoded_bytes: int) -> int:
        """How many of the rows go into the next row group of a file of so many bytes; of all, near-equal slices.

        A row group that might take more than there is room for is made smaller. 0: not even one row fits, and the file
        is to be finished; a file of 0 bytes takes one in any case.
        """
        room = FOR_ROWS * self.max_file_bytes - (encoded_bytes or self.footer.schema_bytes)
        if rows.nbytes < 1.5 * self.row_group_bytes and self._fits(rows, room):
            return rows.num_rows
        count = math.ceil(rows.num_rows / max(1, round(rows.nbytes / self.row_group_bytes)))
        while count and not self._fits(rows.slice(0, count), room):
            count //= 2
        return count if encoded_bytes else max(1, count)

    def _fits(self, rows: pa.Table, room: float) -> bool:
        """With what is told of each column in the footer, and before each page once more."""
        left = room - most_bytes(rows)
        return 2 * self.footer.of_any_rows <= left or 2 * self.footer.of_rows(rows) <= left


def most_bytes(rows: pa.Table) -> int:
    """What the rows take at most once they are encoded, before they are compressed."""
    return math.ceil(sum(column.nbytes * _widening(column.type) for column in rows.columns))


def _widening(type_: pa.DataType) -> float:
    """How much more than Arrow Parquet takes for a value: it has no integers of less than four bytes."""
    if pa.types.is_nested(type_):
        return max((_widening(child.type) for child in _children(type_)), default=1.0)
    if pa.types.is_integer(type_):
        return max(1.0, 8 * _PARQUET_INT_BYTES / type_.bit_width)
    return 1.0


def _children(type_: pa.DataType) -> Iterable["pa.Field[pa.DataType]"]:
    return (type_.field(place) for place in range(type_.num_fields))
