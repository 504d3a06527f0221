"""Growth of a file: the size of its footer, when the file is full, and how many rows the next row group takes."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tallymark.engine.arrow.leaves import leaves
from tallymark.engine.arrow.plain_size import is_text

COLUMN_BYTES = 180
"""Bytes of a file per column, beside its name: Parquet's schema and Arrow's, each with the field id. 140 to 171 were
measured, for nine types.
"""

NAME_BYTES = 3
"""Bytes per byte of a column's name: both schemas contain it, Arrow's in base 64."""

CHUNK_BYTES = 85
"""Bytes per column of a row group, beside its name, minimum and maximum. 60 to 75 were measured in small files."""

STATISTICS_BYTES_MAX = 4096
"""A longer value is not recorded as a minimum or maximum (Parquet's C++ library)."""


@dataclass(frozen=True, slots=True)
class FooterSize:
    """Approximate footer size of the files of one schema, rather too large than too small."""

    schema_bytes: int
    """Size before any row."""
    of_any_rows: int
    """Size of a row group's part, for any rows."""
    _texts: tuple[int, ...]
    """Indexes of the columns whose values matter."""

    @classmethod
    def of(cls, schema: pa.Schema) -> "FooterSize":
        columns = [column for field in schema for column in leaves(field)]
        return cls(
            schema_bytes=sum(COLUMN_BYTES + NAME_BYTES * len(path) for path, _ in columns),
            of_any_rows=sum(CHUNK_BYTES + len(path) + _statistics_bytes(type_) for path, type_ in columns),
            _texts=tuple(place for place, field in enumerate(schema) if is_text(field.type)),
        )

    def of_rows(self, rows: pa.Table) -> int:
        """Return the size of a row group's part for these rows. A text in a nested column counts as long as statistics
        allow.
        """
        return self.of_any_rows - 2 * sum(STATISTICS_BYTES_MAX - _longest(rows.column(place)) for place in self._texts)


def _statistics_bytes(type_: pa.DataType) -> int:
    """Return the size of the minimum and the maximum; those of numbers are stored in an older form, too."""
    if is_text(type_):
        return 2 * STATISTICS_BYTES_MAX
    if pa.types.is_nested(type_) or pa.types.is_null(type_):
        return 0  # of no values, or of a kind that Parquet does not take
    return 4 * max(1, type_.bit_width // 8)


def _longest(column: "pa.ChunkedArray[Any]") -> int:
    longest: int | None = pc.max(pc.binary_length(column)).as_py()
    return min(longest or 0, STATISTICS_BYTES_MAX)


LARGEST = 1.25
"""A file is at most this many times the maximum, whatever its rows, unless a single row is larger, or what the footer
has to record of its columns.
"""

FOR_ROWS = 1.2
"""The part of that for rows with their Parquet statistics; the rest is for what is not counted."""

PLANNED_FULL = 1.125
"""A planned file is full beyond this: its rows may take an eighth more than was expected, so that no second, tiny file
takes the rest.
"""

_PARQUET_INT_BYTES = 4
"""The least that Parquet takes for an integer that it cannot pack."""


@dataclass(frozen=True, slots=True)
class FileGrowth:
    max_file_bytes: int
    row_group_bytes: int
    """Arrow bytes of a row group."""
    footer: FooterSize

    def is_full(self, encoded_bytes: int, *, is_planned: bool) -> bool:
        """Return whether a file of this many bytes takes no further row group."""
        return encoded_bytes >= self.max_file_bytes * (PLANNED_FULL if is_planned else 1)

    def next_rows(self, rows: pa.Table, encoded_bytes: int) -> int:
        """Return how many of the rows go into the next row group of a file of this many bytes. Slices of all are nearly
        equal.

        A row group that might take more than there is room for is made smaller. 0: not even one row fits, and the file
        is to be finished; a file of 0 bytes always takes a row.
        """
        room = FOR_ROWS * self.max_file_bytes - (encoded_bytes or self.footer.schema_bytes)
        if rows.nbytes < 1.5 * self.row_group_bytes and self._fits(rows, room):
            return rows.num_rows
        count = math.ceil(rows.num_rows / max(1, round(rows.nbytes / self.row_group_bytes)))
        while count and not self._fits(rows.slice(0, count), room):
            count //= 2
        return count if encoded_bytes else max(1, count)

    def _fits(self, rows: pa.Table, room: float) -> bool:
        """Return whether the rows fit, with each column's statistics in the footer and before each page."""
        left = room - most_bytes(rows)
        return 2 * self.footer.of_any_rows <= left or 2 * self.footer.of_rows(rows) <= left


def most_bytes(rows: pa.Table) -> int:
    """Return an upper bound of the rows' size once they are encoded, before they are compressed."""
    return math.ceil(sum(column.nbytes * _widening(column.type) for column in rows.columns))


def _widening(type_: pa.DataType) -> float:
    """Return how much more than Arrow Parquet takes per value: it has no integers of less than four bytes."""
    if pa.types.is_nested(type_):
        return max((_widening(child.type) for child in _children(type_)), default=1.0)
    if pa.types.is_integer(type_):
        return max(1.0, 8 * _PARQUET_INT_BYTES / type_.bit_width)
    return 1.0


def _children(type_: pa.DataType) -> Iterable["pa.Field[pa.DataType]"]:
    return (type_.field(place) for place in range(type_.num_fields))
