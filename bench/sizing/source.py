"""The rows of one append, as Parquet files on local disk that every side reads: one file a task, made without Spark.

A partition number, a number of its own, and a text of digits that take about half of its length once they are encoded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

pc: Any = pyarrow.compute
"""Its stubs know fewer combinations of arguments than it takes."""

DIGITS = 10
"""Of a piece of text; its length is a multiple of these."""

PARTITION_BY = "p"

BYTES_A_PIECE = 4.6
"""That so many digits take in a file compressed with zstd, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One append."""

    rows: tuple[int, ...]
    """Of each partition."""
    pieces: int
    """Of a row's text."""
    tasks: int
    """That have a share of every partition each."""

    @property
    def row_count(self) -> int:
        return sum(self.rows)

    @property
    def bytes(self) -> int:
        """In files, about."""
        return round(self.row_count * self.pieces * BYTES_A_PIECE)

    def write(self, folder: Path, *, seed: int) -> None:
        """Make the source files in a new folder."""
        folder.mkdir(parents=True)
        for task in range(self.tasks):
            table = _rows([*self._share(task)], self.pieces, seed=1000 * seed + task)
            pq.write_table(table, folder / f"part-{task:05d}.parquet", compression="snappy")

    def _share(self, task: int) -> Iterator[int]:
        for rows in self.rows:
            yield rows * (task + 1) // self.tasks - rows * task // self.tasks


def _rows(counts: Sequence[int], pieces: int, *, seed: int) -> pa.Table:
    count = sum(counts)
    partitions = [number for number, rows in enumerate(counts) for _ in range(rows)]
    text = pc.binary_join_element_wise(*(_digits(count, seed=97 * seed + piece) for piece in range(pieces)), "")
    return pa.table(
        {
            PARTITION_BY: pa.array(partitions, pa.int32()),
            "id": pa.array(range(seed * count, (seed + 1) * count), pa.int64()),
            "text": text,
        }
    )


def _digits(count: int, *, seed: int) -> Any:
    drawn = pc.floor(pc.multiply(pc.random(count, initializer=seed), float(10**DIGITS))).cast(pa.int64())
    return pc.utf8_lpad(drawn.cast(pa.string()), DIGITS, "0")
