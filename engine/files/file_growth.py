"""How far a file may grow: when it is full, and how many rows of a table the next row group takes."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tallymark.engine.sizing.plain_bytes import is_text

LARGEST = 1.25
"""No file is larger than this many times the maximum, whatever its rows come to, unless one row alone is, or what the
footer has to tell of its columns."""

FOR_ROWS = 1.2
"""Of that, what rows may take with what Parquet tells of them; the rest is for what nobody has counted."""

COLUMN_BYTES = 400
"""Of a file for each column, beside its name: Parquet's schema and Arrow's. 150 to 300 were seen."""

CHUNK_BYTES = 150
"""Of the footer for each column of a row group, beside its name, least and greatest value. 90 to 120 were seen."""

_TOLD_BYTES_MAX = 4096
"""A value beyond this is not told as the least or the greatest (Parquet's C++ library)."""

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

    def is_full(self, encoded_bytes: int, *, is_planned: bool) -> bool:
        """Whether a file of so many bytes takes no further row group."""
        return encoded_bytes >= self.max_file_bytes * (PLANNED_FULL if is_planned else 1)

    def next_rows(self, rows: pa.Table, encoded_bytes: int) -> int:
        """How many of the rows go into the next row group of a file of so many bytes; of all, near-equal slices.

        A row group that might take more than there is room for is made smaller. 0: not even one row fits, and the file
        is to be finished; a file of 0 bytes takes one in any case.
        """
        room = FOR_ROWS * self.max_file_bytes - (encoded_bytes or schema_bytes(rows.schema))
        if rows.nbytes < 1.5 * self.row_group_bytes and (_surely_most(rows) <= room or most_added_bytes(rows) <= room):
            return rows.num_rows
        count = math.ceil(rows.num_rows / max(1, round(rows.nbytes / self.row_group_bytes)))
        while count and most_added_bytes(rows.slice(0, count)) > room:
            count //= 2
        return count if encoded_bytes else max(1, count)


def most_bytes(rows: pa.Table) -> int:
    """What the rows take at most once they are encoded, before they are compressed."""
    return math.ceil(sum(column.nbytes * _widening(column.type) for column in rows.columns))


def schema_bytes(schema: pa.Schema) -> int:
    """About what a file's footer takes before any row."""
    return sum(COLUMN_BYTES + 4 * len(path) for path, _ in _leaves(schema))


def footer_bytes(rows: pa.Table) -> int:
    """About what a row group of these rows adds to the footer: of each column its name, least and greatest value."""
    return sum(CHUNK_BYTES + len(path) + 2 * _longest(rows, path, type_) for path, type_ in _leaves(rows.schema))


def most_added_bytes(rows: pa.Table) -> int:
    """What a row group of these rows adds at most to a file, its part of the footer included."""
    return most_bytes(rows) + 2 * footer_bytes(rows)  # told before each page, too


def _surely_most(rows: pa.Table) -> int:
    """Without a look at any value, which of a small file is not worth its time."""
    told = sum(CHUNK_BYTES + len(path) + 2 * _TOLD_BYTES_MAX for path, _ in _leaves(rows.schema))
    return most_bytes(rows) + 2 * told


def _leaves(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    """Columns as Parquet has them, by the path of each."""
    waiting = [(field.name, field.type) for field in schema]
    while waiting:
        path, type_ = waiting.pop()
        if pa.types.is_nested(type_):
            waiting += ((f"{path}.{child.name}", child.type) for child in _children(type_))
        else:
            yield path, type_


def _longest(rows: pa.Table, path: str, type_: pa.DataType) -> int:
    """Bytes of the longest value; of one in a nested column, what it may have."""
    if not is_text(type_):
        return 8
    if path not in rows.schema.names:
        return _TOLD_BYTES_MAX
    longest: int | None = pc.max(pc.binary_length(rows.column(path))).as_py()
    return min(longest or 0, _TOLD_BYTES_MAX)


def _widening(type_: pa.DataType) -> float:
    """How much more than Arrow Parquet takes for a value: it has no integers of less than four bytes."""
    if pa.types.is_nested(type_):
        return max((_widening(child.type) for child in _children(type_)), default=1.0)
    if pa.types.is_integer(type_):
        return max(1.0, 8 * _PARQUET_INT_BYTES / type_.bit_width)
    return 1.0


def _children(type_: pa.DataType) -> Iterable["pa.Field[pa.DataType]"]:
    return (type_.field(place) for place in range(type_.num_fields))
