"""The memory that one task takes to fill a large file: the task in a process of its own, and its peak out of /proc."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pyarrow as pa
import pyarrow.compute

from tallymark.bench.folder import new_folder
from tallymark.bench.writes.apart import run_apart
from tallymark.engine.settings import MarkerSettings, SizingSettings
from tallymark.engine.sizing.plan import PlannedFile
from tallymark.engine.sizing.profile import IncomingRows, WorkloadProfile
from tallymark.engine.table import Table, open_table
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.task_writer import write_task
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile

pc: Any = pyarrow.compute
"""Its stubs know fewer combinations of arguments than it takes."""

MIB = 1 << 20

FILE_BYTES = 120 * MIB
"""Of the file that is filled."""

BAR_BYTES = 600 * MIB

GROWN = 2
"""What a file may have that is filled, over that."""

BUDGET = 1000.0
"""So that no cost keeps the planner from filling it."""

INSERTED = 0.1
"""Rows that come to it, as a share of its own."""

BATCH_ROWS = 10_000
"""As Spark hands them to a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Of one kind, made batch by batch from a fixed seed."""

    kind: str
    columns: int
    """Of text."""
    digits: int
    """Drawn ones of a text; the rest are zeros."""
    width: int
    """Of a text."""
    row_bytes: float
    """That a row takes in a file, at least."""

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(f"c{number}", pa.string()) for number in range(self.columns)])

    def batches(self, count: int) -> Iterator[pa.RecordBatch]:
        for first in range(0, count, BATCH_ROWS):
            size = min(BATCH_ROWS, count - first)
            columns = [self._text(size, seed=first * self.columns + number) for number in range(self.columns)]
            yield pa.record_batch(columns, schema=self.schema)

    def _text(self, size: int, *, seed: int) -> Any:
        drawn = pc.floor(pc.multiply(pc.random(size, initializer=seed), float(10**self.digits))).cast(pa.int64())
        return pc.utf8_lpad(drawn.cast(pa.string()), self.width, "0")


KINDS = (
    Rows(kind="four columns of digits", columns=4, digits=15, width=16, row_bytes=24),
    Rows(kind="two hundred columns", columns=200, digits=4, width=8, row_bytes=250),
    Rows(kind="text that nearly vanishes", columns=4, digits=2, width=40, row_bytes=2),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FillMemory:
    rows: str
    """What they are like."""
    old_bytes: int
    new_bytes: int
    before_bytes: int
    """That the process has held before the task began: Python and its libraries."""
    peak_bytes: int
    """In all. Resident pages, shared ones included (VmHWM)."""


def measure_fills(
    parent: Path,
    *,
    kinds: Sequence[Rows] = KINDS,
    share: float = 1.0,
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[FillMemory, ...]:
    """In a new folder below this one. ``share``: of the file that is to be filled."""
    with new_folder(parent) as folder:
        found = []
        for number, rows in enumerate(kinds):
            progress(f"sizing: memory of a fill, {rows.kind}")
            found.append(anyio.run(_filled, folder / str(number), rows, share, backend="trio"))
        return tuple(found)


async def _filled(folder: Path, rows: Rows, share: float) -> FillMemory:
    folder.mkdir()
    table, size = open_table(str(folder)), round(share * FILE_BYTES)
    first = SizingSettings(max_file_bytes=size, small_file_bytes=0)
    await _append(table, rows, round(1.5 * size / rows.row_bytes), first)
    files = (await table.snapshot()).files
    old = max(files, key=lambda file: file.bytes)
    most = round(size * GROWN)
    then = SizingSettings(max_file_bytes=most, small_file_bytes=most, rewrite_budget=BUDGET)
    others = frozenset(file.path for file in files if file is not old)
    report, before, peak = await _append(table, rows, round(INSERTED * old.rows), then, fill=old, but=others)
    [new] = report.files
    assert new.rewritten_bytes == old.bytes, "the file was filled"
    return FillMemory(
        rows=rows.kind,
        old_bytes=old.bytes,
        new_bytes=new.bytes,
        before_bytes=before,
        peak_bytes=peak,
    )


async def _append(
    table: Table,
    rows: Rows,
    count: int,
    sizing: SizingSettings,
    *,
    fill: DataFile | None = None,
    but: frozenset[str] = frozenset(),
) -> tuple[TaskReport, int, int]:
    markers = MarkerSettings(kind="direct")
    async with table.write(schema=rows.schema, mode="append", markers=markers, sizing=sizing) as job:
        planned = None
        if fill is not None:
            profile = WorkloadProfile(
                incoming=(IncomingRows("", count, round(INSERTED * fill.plain_bytes)),), taken=but
            )
            [planned] = (await job.size(profile)).files
        written = await anyio.to_thread.run_sync(run_apart, _task, job.ticket, rows, count, planned)
        await job.commit([written[0]])
    return written


def _task(ticket: WriteTicket, rows: Rows, count: int, planned: PlannedFile | None) -> TaskReport:
    return write_task(ticket, rows.batches(count), task=0, planned=() if planned is None else (planned,))
