"""What the steps share."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import tallymark
from demo.checks import Checks
from demo.checksum import of_arrow
from demo.report import Report
from demo.storage import Storage

Mode = Literal["append", "overwrite"]


@dataclass(frozen=True, slots=True)
class MarkerBill:
    """What the markers of one write cost."""

    write: str
    markers: int
    objects: int
    puts: int


@dataclass(slots=True, kw_only=True)
class Scene:
    """One table, one Spark, and what the table must hold by now."""

    spark: SparkSession
    table: Path
    source: Path
    """The flights as one Parquet file, as they might lie in somebody's inbox."""
    scratch: Path
    expected: pa.Table
    report: Report
    checks: Checks
    bills: list[MarkerBill] = field(default_factory=list)

    @property
    def flights(self) -> DataFrame:
        return self.spark.read.parquet(str(self.source))

    def expected_rows(self, month: int) -> int:
        return of_arrow(self.expected).months[month][0]

    def look(self) -> Storage:
        return Storage.look(self.table)

    @contextmanager
    def step(self, number: int, title: str) -> Iterator[None]:
        self.checks.step = number
        self.report.headline(f"{number}. {title}")
        began = self.report.seconds
        yield
        self.report.say(f"(step {number}: {self.report.seconds - began:.1f} s)")

    def write(self, name: str, rows: DataFrame, *, mode: Mode, by: Sequence[str] = ()) -> tallymark.WriteResult:
        """Write rows as a user would; on a terminal the library shows its own progress."""
        with self.report.working(f"tallymark.write: {name}", dots=not sys.stderr.isatty()):
            result = tallymark.write(rows, str(self.table), mode=mode, partition_by=by, partition_overwrite="dynamic")
        self.bills.append(MarkerBill(name, result.markers, result.marker_objects, result.puts))
        return result

    def show_storage(self, moments: dict[str, Storage]) -> None:
        """What lay on storage at each of these moments, one column a moment."""
        rows = [
            ("data files, committed", [len(storage.data & storage.committed) for storage in moments.values()]),
            ("data files that nobody committed", [len(storage.uncommitted) for storage in moments.values()]),
            ("unfinished files in staging", [len(storage.of_kind("staged")) for storage in moments.values()]),
            ("markers", [len(storage.markers) for storage in moments.values()]),
            ("objects that hold them", [len(storage.of_kind("segment")) for storage in moments.values()]),
            ("reservations of open writes", [len(storage.of_kind("reservation")) for storage in moments.values()]),
            ("entries of the commit log", [len(storage.of_kind("log")) for storage in moments.values()]),
            ("files that belong to nothing", [len(storage.of_kind("unknown")) for storage in moments.values()]),
        ]
        self.report.table(["on storage", *moments], [(name, *counts) for name, counts in rows])
