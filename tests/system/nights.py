"""What a pipeline loads night by night, and what its table holds by then: an own model of a few lines."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

import tallymark
from tallymark import TaskSettings, WriteResult

ROWS_A_DAY = 400
PARTITION_BY = ["month", "day"]
SCHEMA = "id bigint, month int, day int"

EAGER = TaskSettings(row_group_bytes=128, buffer_bytes=1 << 20)
"""Files are begun with the first batch: 16 rows are a row group."""

Day = tuple[int, int]
"""Month and day: a partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One job: rows of some days of a month, with ids of its own, and how they are to come into the table."""

    first: int
    days: tuple[int, ...]
    month: int = 1
    mode: Literal["append", "overwrite"] = "append"
    partition_overwrite: Literal["static", "dynamic"] = "dynamic"
    partition: Mapping[str, int] | None = None
    only_partitions: Mapping[str, int] | None = None
    base: int | None = None
    txn: str | None = None

    @property
    def ids(self) -> range:
        return range(self.first, self.first + ROWS_A_DAY * len(self.days))

    def rows(self, spark: SparkSession, *, tasks: int = 2) -> DataFrame:
        """Each task has rows of each day."""
        days = ", ".join(map(str, self.days))
        return spark.range(self.ids.start, self.ids.stop, 1, tasks).selectExpr(
            "id", f"{self.month} AS month", f"array({days})[int(id % {len(self.days)})] AS day"
        )

    def write(self, df: DataFrame, url: str) -> WriteResult:
        return tallymark.write(
            df,
            url,
            mode=self.mode,
            partition_by=PARTITION_BY,
            partition=self.partition,
            partition_overwrite=self.partition_overwrite,
            only_partitions=self.only_partitions,
            base=self.base,
            txn=self.txn,
            tasks=EAGER,
            progress=False,
        )


@dataclass(slots=True)
class Held:
    """What the table is to hold."""

    ids: dict[Day, Counter[int]] = field(default_factory=dict)

    def take(self, load: Load) -> None:
        """What the load does to the table once it has committed."""
        brought: dict[Day, Counter[int]] = {(load.month, day): Counter() for day in load.days}
        for number in load.ids:
            brought[load.month, load.days[number % len(load.days)]][number] += 1
        if load.mode == "overwrite":
            self.ids = {day: ids for day, ids in self.ids.items() if not _replaces(load, day)}
        for day, ids in brought.items():
            self.ids[day] = self.ids.get(day, Counter()) + ids

    def rows(self, spark: SparkSession) -> DataFrame:
        found = [(number, *day) for day, ids in self.ids.items() for number in ids.elements()]
        return spark.createDataFrame(found, SCHEMA)


def _replaces(load: Load, day: Day) -> bool:
    values = dict(zip(PARTITION_BY, day, strict=True))
    if any(values[name] != value for name, value in (load.partition or {}).items()):
        return False
    return load.partition_overwrite == "static" or (values["month"] == load.month and values["day"] in load.days)
