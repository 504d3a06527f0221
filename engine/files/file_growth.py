"""How far a file may grow: when it is full, and how many rows of a table the next row group takes."""

import math
from dataclasses import dataclass

import pyarrow as pa

LARGEST = 1.25
"""No file is larger than this many times the maximum, whatever its rows come to."""

FOR_ROWS = 1.2
"""Of that, what rows may take; the rest is for statistics and the footer."""

PLANNED_FULL = 1.125
"""A file of which a plan knows is full beyond this: its rows may take an eighth more than was expected, so that no
second, tiny file takes the rest."""


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

        Encoded rows take no more than Arrow's bytes, so a row group that has no more of these than there is room for
        does not carry the file beyond ``FOR_ROWS``.
        """
        room = max(1.0, FOR_ROWS * self.max_file_bytes - encoded_bytes)
        if rows.nbytes <= room and rows.nbytes < 1.5 * self.row_group_bytes:
            return rows.num_rows
        near = max(1, round(rows.nbytes / self.row_group_bytes))
        return max(1, rows.num_rows // max(near, math.ceil(rows.nbytes / room)))
