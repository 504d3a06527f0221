"""The rows to write, as Parquet files on local disk that every side reads: one file a task, made without Spark.

Flat rows for the append: a number, a time, a word of few, a double, a count, a code of 16 digits. For tables with
partitions the columns of the published one: year, month, date, data. All drawn from a fixed seed.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

pc: Any = pyarrow.compute
"""Its stubs know fewer combinations of arguments than it takes."""

WORDS = ("view", "click", "cart", "order", "return", "search", "login", "logout")

FIRST_DAY = date(2013, 1, 1)

PARTITION_BY = ("year", "month", "date")


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    rows: int
    tasks: int
    """Source files, each read by one task."""
    partitions: int = 0
    """Days, one partition each; 0 for flat rows."""
    is_spread: bool = False
    """Whether each task has rows of every partition; else a partition's rows are in one task, mixed with others'."""

    @property
    def partition_by(self) -> tuple[str, ...]:
        return PARTITION_BY if self.partitions else ()

    def write(self, folder: Path) -> None:
        """Make the source files in a new folder."""
        folder.mkdir(parents=True)
        for task in range(self.tasks):
            count = self.rows * (task + 1) // self.tasks - self.rows * task // self.tasks
            table = self._dates(task, count) if self.partitions else _events(task, count)
            pq.write_table(table, folder / f"part-{task:05d}.parquet", compression="snappy")

    def _dates(self, task: int, count: int) -> pa.Table:
        own = range(self.partitions) if self.is_spread else range(task, self.partitions, self.tasks)
        days = [FIRST_DAY + timedelta(days=number) for number in own] or [FIRST_DAY]
        every = pa.array([number % len(days) for number in range(min(count, len(days)))], pa.int32())
        drawn = pa.concat_arrays([every, whole(count - len(every), len(days), seed=task).cast(pa.int32())])
        return pa.table(
            {
                "year": pa.array([day.year for day in days], pa.int32()).take(drawn),
                "month": pa.array([day.month for day in days], pa.int32()).take(drawn),
                "date": pa.array([day.isoformat() for day in days]).take(drawn),
                "data": _text(count, seed=1000 * task),
            }
        )


def _events(task: int, count: int) -> pa.Table:
    first_us = round(datetime(2013, 1, 1, tzinfo=UTC).timestamp() * 1e6)
    at = pc.add(whole(count, 86_400_000_000, seed=task), first_us)
    return pa.table(
        {
            "id": pa.array(range(task * count, (task + 1) * count), pa.int64()),
            "at": at.cast(pa.timestamp("us", "UTC")),
            "kind": pa.array(WORDS).take(whole(count, len(WORDS), seed=task + 1)),
            "amount": pc.multiply(pc.random(count, initializer=task + 2), 1000.0),
            "count": whole(count, 1000, seed=task + 3).cast(pa.int32()),
            "code": digits(count, seed=task + 4),
        }
    )


def whole(count: int, below: int, *, seed: int) -> Any:
    return pc.floor(pc.multiply(pc.random(count, initializer=seed), float(below))).cast(pa.int64())


def _text(count: int, *, seed: int) -> Any:
    """Of 67 characters that do not compress to nothing."""
    a, b, c, d = (digits(count, seed=seed + number) for number in range(4))
    return pc.binary_join_element_wise(a, b, c, d, "-")


def digits(count: int, *, seed: int) -> Any:
    """Text of 16 digits."""
    return pc.utf8_lpad(whole(count, 10**15, seed=seed).cast(pa.string()), 16, "0")
