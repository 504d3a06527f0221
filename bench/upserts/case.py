"""What is written: a table of seven columns in four files, and a batch of rows whose keys it has, or has not yet.

Keys are random UUIDs as text, or whole numbers that grow with time. All is drawn from a fixed seed.
"""

import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from tallymark.bench.writes.data import WORDS, digits, whole

pc: Any = pyarrow.compute
"""Its stubs know fewer combinations of arguments than it takes."""

Name = Literal["A", "B", "C"]

FILES = 4

KEY, ORDER = "id", "at"

NEWEST = 10
"""C updates rows of the newest tenth of the table."""

UPDATED_OF_C = 10
"""A tenth of the batch of C; the rest is new."""

FIRST_US = round(datetime(2013, 1, 1, tzinfo=UTC).timestamp() * 1e6)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertCase:
    name: Name
    rows: int
    """Of the table."""
    batch: int
    """Rows that come."""
    inserted: int = 0
    """Of these, those with a new key, which are greater than all."""
    newest: int = 0
    """Keys grow with time, and the batch updates some of so many rows, the newest; 0: keys are random."""
    files: int = FILES
    columns: tuple[str, ...] = ()
    """Those that it has; empty: all."""
    floors: float = 1.0
    """The bar: so many times the floor, and ``appends`` times an append of the new rows."""
    appends: float = 1.0
    delta_max: float = 0.0
    """The bar: the share of Delta's CPU."""
    hudi_max: float = 0.25

    @property
    def absent(self) -> tuple[str, ...]:
        """Sides that are not measured: filters of keys are of use where most of a batch is new."""
        return () if self.newest else ("hudi-bloom",)

    @property
    def label(self) -> str:
        keys = "keys that grow with time" if self.newest else "random keys"
        new = f", {self.inserted:,} of them new" if self.inserted else ""
        return f"{self.name}: {self.batch:,} rows{new}, to {self.rows:,} rows in {self.files} files, {keys}"

    def write(self, folder: Path) -> None:
        """Make ``table``, ``batch`` and ``inserts``, and of a small table ``small`` and ``one``."""
        keys = self._table(folder / "table", self.rows, self.files)
        small = self._table(folder / "small", SMALL_ROWS)
        self._parts(folder / "one", small.slice(len(small) // 2, 1), seed=1, parts=1)
        drawn = pc.sort_indices(pc.random(len(keys), initializer=2)).slice(0, self.batch - self.inserted)
        new = _numbers(self.rows, self.inserted) if self.newest else keys.slice(0, 0)
        self._parts(folder / "batch", pa.concat_arrays([keys.take(drawn), new]), seed=3)
        if self.inserted:
            self._parts(folder / "inserts", new, seed=3)

    def _table(self, folder: Path, rows: int, files: int = FILES) -> Any:
        """Write the rows of a table, one source file for each of its files; return the keys that may be updated."""
        folder.mkdir(parents=True)
        found, newest = [], min(rows, self.newest)
        for number in range(files):
            first, end = (rows * each // files for each in (number, number + 1))
            keys = _numbers(first, end - first) if self.newest else uuids(end - first, seed=number)
            self._write(folder / f"part-{number:05d}.parquet", keys, after=first, seed=10 * number)
            found += [] if self.newest else [keys]
        return _numbers(rows - newest, newest) if self.newest else pa.concat_arrays(found)

    def _parts(self, folder: Path, keys: Any, *, seed: int, parts: int = FILES) -> None:
        """Write rows of these keys, newer than all of the table, as so many source files to which they are dealt."""
        folder.mkdir(parents=True)
        for number in range(parts):
            dealt = keys.take(pa.array(range(number, len(keys), parts), pa.int64()))
            self._write(folder / f"part-{number:05d}.parquet", dealt, after=self.rows, seed=seed + 10 * number)

    def _write(self, path: Path, keys: Any, *, after: int, seed: int) -> None:
        rows = _rows(keys, after=after, seed=seed)
        pq.write_table(rows.select(self.columns) if self.columns else rows, path)


SMALL_ROWS = 1000
"""Of the table that one row is upserted to: what that takes, does not come from the rows."""


def case(name: Name, rows: int) -> UpsertCase:
    """One of the three, with a table of so many rows."""
    match name:
        case "A":
            return UpsertCase(name=name, rows=rows, batch=rows // 10, floors=3.0, delta_max=0.5)
        case "B":
            return UpsertCase(name=name, rows=rows, batch=rows // 100, floors=2.0, delta_max=0.5)
        case "C":
            batch = rows // 10
            return UpsertCase(
                name=name,
                rows=rows,
                batch=batch,
                inserted=batch - batch // UPDATED_OF_C,
                newest=rows // NEWEST,
                floors=1.3,
                appends=1.3,
                delta_max=0.4,
            )


def uuids(count: int, *, seed: int) -> Any:
    """Return random UUIDs as text."""
    width = 32
    text = random.Random(seed).randbytes(count * width // 2).hex().encode()  # noqa: S311 rows of a benchmark
    offsets = pa.array(range(0, width * (count + 1), width), pa.int32())
    whole_text: Any = pa.Array.from_buffers(pa.string(), count, [None, offsets.buffers()[1], pa.py_buffer(text)])
    bounds = (0, 8, 12, 16, 20, width)
    parts = [pc.utf8_slice_codeunits(whole_text, start, end) for start, end in pairwise(bounds)]
    return pc.binary_join_element_wise(*parts, "-")


def _numbers(first: int, count: int) -> Any:
    return pa.array(range(first, first + count), pa.int64())


def _rows(keys: Any, *, after: int, seed: int) -> pa.Table:
    """Return the rows of these keys, the n-th of the time ``after`` + n seconds."""
    count = len(keys)
    at = pc.add(pc.multiply(_numbers(after, count), 1_000_000), FIRST_US)
    return pa.table(
        {
            KEY: keys,
            ORDER: at.cast(pa.timestamp("us", "UTC")),
            "kind": pa.array(WORDS).take(whole(count, len(WORDS), seed=seed + 1)),
            "amount": pc.divide(whole(count, 100_000, seed=seed + 2).cast(pa.float64()), 100.0),
            "count": whole(count, 1000, seed=seed + 3).cast(pa.int32()),
            "code": digits(count, seed=seed + 4),
            "is_paid": pc.greater(pc.random(count, initializer=seed + 5), 0.5),
        }
    )


def growth(rows: int) -> tuple[UpsertCase, UpsertCase]:
    """Case C on a tenth of the rows and on ten times as many, with equal files and equal batches of two columns."""
    small, large = rows // 10, rows * 10
    few = replace(case("C", small), columns=(KEY, ORDER))
    return few, replace(few, rows=large, files=FILES * large // small)
