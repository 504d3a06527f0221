"""Shared parts of the steps: the scene, its report for a person, and its checks."""

import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from rich.box import ASCII
from rich.console import Console
from rich.table import Table

import tallymark
from demo.storage import Storage

SHOWN_PATHS = 3
WIDTH = 100
"""Of the output; less on a narrower terminal."""


class Check(NamedTuple):
    step: int
    claim: str
    holds: bool
    seen: str


class Report:
    """Prints for a person, at once, and records all checks: a check that was not reached cannot pass."""

    def __init__(self) -> None:
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="backslashreplace")  # a folder may be called what the terminal cannot show
        width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns) if sys.stdout.isatty() else WIDTH
        self._console = Console(width=width, highlight=False, markup=False, emoji=False)
        self._started = time.monotonic()
        self._step = 0
        self.checks: list[Check] = []

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def line(self, text: str, *, wrap: bool = True) -> None:
        self._console.print(text, soft_wrap=not wrap)

    def headline(self, text: str) -> None:
        self._console.print(f"\n{text}\n{'-' * len(text)}", style="bold", soft_wrap=True)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str | int]]) -> None:
        """Print a table: texts aligned left, numbers right."""
        shown = Table(box=ASCII)
        for position, head in enumerate(heads):
            is_text = any(isinstance(row[position], str) for row in rows)
            shown.add_column(head, justify="left" if is_text else "right", overflow="fold", no_wrap=position == 0)
        for row in rows:
            shown.add_row(*(cell if isinstance(cell, str) else f"{cell:,}" for cell in row))
        self._console.print(shown)

    @contextmanager
    def working(self, what: str, *, has_own_progress: bool = False) -> Iterator[None]:
        """Print what is done and the time that it took; a terminal also shows that it goes on."""
        started = time.monotonic()
        self.line(f"... {what}")
        with nullcontext() if has_own_progress else self._console.status(what):
            yield
        self.line(f"    done in {time.monotonic() - started:.1f} s")

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        self._step += 1
        self.headline(f"{self._step}. {title}")
        started = self.seconds
        yield
        self.line(f"(step {self._step}: {self.seconds - started:.1f} s)")

    def check(self, claim: str, holds: bool, seen: str) -> None:
        self.checks.append(Check(self._step, claim, holds, seen))

    def check_equal(self, claim: str, seen: int, wanted: int) -> None:
        self.check(claim, seen == wanted, f"{seen:,}" if seen == wanted else f"{seen:,}, not {wanted:,}")


class MarkerCost(NamedTuple):
    """Cost of the markers of one write."""

    write: str
    markers: int
    puts: int
    objects: int


@dataclass(slots=True, kw_only=True)
class Scene:
    """One table, one Spark, and the expected content of the table."""

    spark: SparkSession
    table: Path
    source: Path
    """The flights as one Parquet file, as a user might receive it."""
    scratch: Path
    expected: pa.Table
    report: Report
    costs: list[MarkerCost] = field(default_factory=list)

    @property
    def flights(self) -> DataFrame:
        return self.spark.read.parquet(str(self.source))

    def storage(self) -> Storage:
        return Storage.read(self.table)

    def write(
        self, name: str, rows: DataFrame, *, mode: Literal["append", "overwrite"], by: Sequence[str] = ()
    ) -> tallymark.WriteResult:
        """Write rows as a user would; on a terminal the library shows its own progress."""
        with self.report.working(f"tallymark.write: {name}", has_own_progress=True):
            result = tallymark.write(rows, str(self.table), mode=mode, partition_by=by, partition_overwrite="dynamic")
        self.costs.append(MarkerCost(name, result.markers, result.puts, result.marker_objects))
        return result

    def show_storage(self, **moments: Storage) -> None:
        """Print the content of storage at each of these moments, one column per moment."""
        rows = {
            "data files, committed": [len(each.data & each.committed) for each in moments.values()],
            "data files that no writer committed": [len(each.uncommitted) for each in moments.values()],
            "unfinished files in staging": [len(each.of_kind("staged")) for each in moments.values()],
            "markers": [len(each.markers) for each in moments.values()],
            "objects that contain them": [len(each.of_kind("segment")) for each in moments.values()],
            "reservations of open writes": [len(each.of_kind("reservation")) for each in moments.values()],
            "entries of the commit log": [len(each.of_kind("log")) for each in moments.values()],
            "files that belong to nothing": [len(each.of_kind("unknown")) for each in moments.values()],
        }
        heads = ["on storage", *(name.replace("_", " ") for name in moments)]
        self.report.table(heads, [(name, *counts) for name, counts in rows.items()])

    def check_at_rest(self, storage: Storage) -> None:
        """Check that the folder contains the committed files, the table's own bookkeeping, and nothing else."""
        wrong = storage.unlike_a_table_at_rest()
        more = f" + {len(wrong) - SHOWN_PATHS:,}" if len(wrong) > SHOWN_PATHS else ""
        seen = f"{len(wrong):,} too many, or missing: {', '.join(wrong[:SHOWN_PATHS])}{more}"
        fine = f"{len(storage.data):,} data files, all committed"
        self.report.check("storage contains exactly the committed files", not wrong, seen if wrong else fine)
