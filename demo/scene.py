"""Shared parts of the steps: the scene, its report for a person, and its checks."""

import shutil
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from rich.box import ASCII
from rich.console import Console
from rich.table import Table

import tallymark
from demo.readers import of_arrow
from demo.storage import Storage

SHOWN_PATHS = 3


@dataclass(frozen=True, slots=True)
class Check:
    step: int
    claim: str
    holds: bool
    seen: str


@dataclass(slots=True)
class Checks:
    """All checks so far. None is withdrawn, and a check that was not reached cannot pass."""

    step: int = 0
    made: list[Check] = field(default_factory=list)

    def that(self, claim: str, holds: bool, seen: str) -> None:
        self.made.append(Check(self.step, claim, holds, seen))

    def equal(self, claim: str, seen: int, wanted: int) -> None:
        self.that(claim, seen == wanted, f"{seen:,}" if seen == wanted else f"{seen:,}, not {wanted:,}")

    def at_rest(self, storage: Storage) -> None:
        """Check that the folder contains the committed files, the table's own bookkeeping, and nothing else."""
        remains = storage.remains()
        seen = f"{len(storage.data):,} data files, all committed"
        self.that("storage holds exactly the committed files", not remains, _listed(remains) if remains else seen)

    @property
    def failed(self) -> list[Check]:
        return [check for check in self.made if not check.holds]


def _listed(paths: list[str]) -> str:
    rest = len(paths) - SHOWN_PATHS
    return f"{len(paths):,} too many, or missing: {', '.join(paths[:SHOWN_PATHS])}" + (
        f" + {rest:,}" if rest > 0 else ""
    )


WIDTH = 100
DOT_S = 2.0

Cell = str | int | float


class Report:
    """Writes to stdout, at once."""

    def __init__(self) -> None:
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="backslashreplace")  # a folder may be called what the terminal cannot show
        self._console = Console(width=_width(), highlight=False, markup=False, emoji=False)
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def headline(self, text: str) -> None:
        self._console.print(f"\n{text}\n{'-' * len(text)}", style="bold", soft_wrap=True)

    def say(self, text: str) -> None:
        self._console.print(text)

    def command(self, text: str) -> None:
        """Print a line to be copied: never wrapped."""
        self._console.print(f"  {text}", soft_wrap=True)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """Print a table: the first column aligned left, numbers right."""
        shown = Table(box=ASCII)
        for position, head in enumerate(heads):
            is_text = position == 0 or any(isinstance(row[position], str) for row in rows)
            shown.add_column(head, justify="left" if is_text else "right", overflow="fold", no_wrap=position == 0)
        for row in rows:
            shown.add_row(*map(_shown, row))
        self._console.print(shown)

    @contextmanager
    def working(self, what: str, *, dots: bool = True) -> Iterator[None]:
        """Print what is done, dots while it is done, and the time that it took."""
        began = time.monotonic()
        ended = threading.Event()
        _put(f"... {what} " if dots else f"... {what}\n")
        dotter = threading.Thread(target=_dot, args=(ended,), daemon=True)
        if dots:
            dotter.start()
        try:
            yield
        except BaseException:
            outcome = "failed"
            raise
        else:
            outcome = "done"
        finally:
            ended.set()
            if dots:
                dotter.join()
            _put(f" {outcome} in {time.monotonic() - began:.1f} s\n")


def _width() -> int:
    """Return a terminal's own width where that is less; anything else uses the full width."""
    return min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns) if sys.stdout.isatty() else WIDTH


def _dot(ended: threading.Event) -> None:
    while not ended.wait(DOT_S):
        _put(".")


def _put(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _shown(cell: Cell) -> str:
    match cell:
        case str():
            return cell
        case float():
            return f"{cell:,.1f}"
        case _:
            return f"{cell:,}"


Mode = Literal["append", "overwrite"]


@dataclass(frozen=True, slots=True)
class MarkerBill:
    """Cost of the markers of one write."""

    write: str
    markers: int
    objects: int
    puts: int


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
        """Print the content of storage at each of these moments, one column per moment."""
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
