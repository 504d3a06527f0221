"""What is written: rows in how many files of how many partitions, added or put in the place of others."""

from dataclasses import dataclass
from typing import Literal

from tallymark.bench.writes.data import Data
from tallymark.bench.writes.order import Order

Name = Literal["append", "dynamic-overwrite", "static-overwrite", "small-files"]

EVENTS = 4_000_000
"""Rows of the append at scale 1: two to three seconds on two cores."""

DATES = 1_500_000
"""Rows of an overwrite at scale 1: some 5,000 a partition."""

PARTITIONS = 300
"""Of the published INSERT OVERWRITE."""

SMALL_PARTITIONS, SMALL_TASKS = 165, 100
"""16,500 files: a tenth of the published marker run."""

SMALL_ROWS = 4
"""Of each of those files: what is measured is not the data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteCase:
    name: Name
    data: Data
    mode: Literal["append", "overwrite"]
    partition_overwrite: Literal["static", "dynamic"] = "static"
    is_new: bool = False
    """Whether each round writes a table of its own; else it is one that earlier rounds have written."""

    def order(self, *, source: str, target: str, codec: str) -> Order:
        return Order(
            source=source,
            target=target,
            mode=self.mode,
            partition_by=self.data.partition_by,
            partition_overwrite=self.partition_overwrite,
            codec=codec,
        )

    @property
    def files(self) -> int:
        """That the rows are spread over; a peer may make others of them."""
        data = self.data
        return data.partitions * (data.tasks if data.is_spread else 1) or data.tasks

    @property
    def label(self) -> str:
        verb = {
            "append": "append",
            "dynamic-overwrite": "dynamic overwrite",
            "static-overwrite": "static overwrite",
            "small-files": "small files",
        }[self.name]
        data = self.data
        parts = f", {data.partitions} partitions" if data.partitions else ""
        files = f", {self.files:,} files" if data.is_spread else ""
        return f"{verb}: {data.rows:,} rows{parts}{files}"


def case(name: Name, scale: float) -> WriteCase:
    """At scale 1 as published but for the number of rows and, of small files, a tenth of their number."""
    match name:
        case "append":
            return WriteCase(name=name, data=Data(rows=_rows(EVENTS, scale), tasks=8), mode="append")
        case "dynamic-overwrite" | "static-overwrite":
            partitions = min(PARTITIONS, max(3, round(20 * PARTITIONS * scale)))
            return WriteCase(
                name=name,
                data=Data(rows=_rows(DATES, scale), tasks=8, partitions=partitions),
                mode="overwrite",
                partition_overwrite="dynamic" if name == "dynamic-overwrite" else "static",
            )
        case "small-files":
            side = scale**0.5
            tasks, partitions = max(2, round(SMALL_TASKS * side)), max(2, round(SMALL_PARTITIONS * side))
            data = Data(rows=SMALL_ROWS * tasks * partitions, tasks=tasks, partitions=partitions, is_spread=True)
            return WriteCase(name=name, data=data, mode="append", is_new=True)


def _rows(count: int, scale: float) -> int:
    return max(100, round(count * scale))
