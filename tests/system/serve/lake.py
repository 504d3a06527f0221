"""A lake as a company has it: weeks of commits, a dead writer, a broken table, names with script in them, and a job."""

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pyarrow as pa
from anyio.to_thread import run_sync

import tallymark
from tallymark.engine.partitions.path import escaped
from tallymark.engine.settings import MarkerSettings, SharedServiceSettings, TaskSettings
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.timeline.entry import DataFile
from tests.support.process import ROOT

HOSTILE = "labs/<script>alert('R&D')</script>"
HOSTILE_NAME = "script_3E"
"""What the library makes of it."""

HOSTILE_VALUE = """<script>document.title="taken"</script><img src=//example.com/x onerror=alert(1)>&amp;"""
HOSTILE_PATH = f"day={escaped(HOSTILE_VALUE)}"

ROW = {"day": "", "id": 1042, "customer": "C-17", "amount": 19.9}
SCHEMA = pa.RecordBatch.from_pylist([ROW]).schema

FILES = TaskSettings(open_file_count=1, row_group_bytes=1, buffer_bytes=1)
"""A file per batch."""

APPEND: dict[str, Any] = {"schema": SCHEMA, "mode": "append", "partition_by": ["day"]}
KEEPING: dict[str, Any] = {"schema": SCHEMA, "mode": "overwrite", "readers": "table", "retain_hours": 72.0}


@dataclass(frozen=True, slots=True)
class Commits:
    number: int
    hours: float
    """Between two of them."""
    pairs: int
    """Files of each in each of two partitions."""
    mib: float
    """Size of a file, about."""


HISTORIES = {
    "sales/orders": Commits(12, 24, 2, 106),
    "sales/order_items": Commits(3, 24, 4, 112),
    "sales/returns": Commits(2, 24, 1, 31),
    "web/sessions": Commits(3, 1, 10, 4),
    "web/events": Commits(4, 1, 6, 64),
    "support/tickets": Commits(1, 24, 1, 2.5),
}


@dataclass(frozen=True, slots=True)
class Past:
    """The clock of a writer of that time."""

    hours: float

    def now(self) -> datetime:
        return datetime.now(UTC) - timedelta(hours=self.hours)


def day(hours: float) -> str:
    return f"{Past(hours).now():%Y-%m-%d}"


def rows(value: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{**ROW, "day": value}] * 40, SCHEMA)


async def write(folder: Path, values: list[str], mib: float, *, hours: float = 0.0, **how: Any) -> None:
    """Commit a file per value, without ``mib`` fail. The log, and so each page, has sizes of a real lake."""
    how = {"tasks": FILES, "markers": MarkerSettings(kind="direct"), **how}
    async with tallymark.open_table(folder, clock=Past(hours)).write(**how) as job:
        batches = [rows(value) for value in values]
        report = await run_sync(partial(tallymark.write_task, job.ticket, batches, task=0))
        if mib:
            await job.commit([replace(report, files=tuple(scaled(file, mib) for file in report.files))])


def scaled(file: DataFile, mib: float) -> DataFile:
    by_path = random.Random(file.path)
    size = round(by_path.lognormvariate(0, 0.12) * mib * 2**20)
    return replace(file, bytes=size, rows=size // by_path.randint(90, 140))


async def build(lake: Path) -> None:
    """Make ten tables, but for the dead writers."""
    async with anyio.create_task_group() as tasks:
        for name, made in HISTORIES.items():
            tasks.start_soon(build_table, lake / name, made)
    for hours in (49.5, 25.5, 1.5):
        await write(lake / "finance/ledger", [""], 111, hours=hours, **KEEPING)
    await write(lake / "finance/exchange_rates", [""], 0.4, hours=5.1, **KEEPING)
    await write(lake / HOSTILE, [HOSTILE_VALUE, 'it\'s "quoted" & <b>bold</b>'], 3, **APPEND, txn="<i>nightly</i>:1")
    (lake / "web/clicks/.hoodie").mkdir(parents=True)
    (lake / "web/clicks/.hoodie/hoodie.properties").write_text("hoodie.table.name=clicks\n")


async def build_table(table: Path, made: Commits) -> None:
    """Commit rows of each day and late ones of the day before. One job fails, and one corrects a day."""
    for number in reversed(range(made.number)):
        hours = 0.2 + number * made.hours
        values = [day(hours), day(hours + 24)] * made.pairs
        await write(table, values, made.mib, hours=hours, **APPEND, txn=f"{table.name}:{made.number - number}")
        if number == 3 and table.name == "orders":
            await write(table, values, 0, hours=hours - 0.1, **APPEND)
            correction = {**APPEND, "mode": "overwrite", "partition": {"day": values[0]}}
            await write(table, values[:1], made.mib, hours=hours - 0.2, **correction)


def die_writing(lake: Path) -> None:
    """Another process writes two tables and is killed before it commits."""
    program = f"from tests.system.serve.lake import write_and_die; write_and_die({str(lake)!r})"
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False)
    assert ended.returncode == -signal.SIGKILL


def write_and_die(lake: str) -> None:
    async def die() -> None:
        tables = {"sales/orders": [day(24), day(0), day(0)], HOSTILE: [HOSTILE_VALUE]}
        async with AsyncExitStack() as jobs:
            for name, values in tables.items():
                table = tallymark.open_table(Path(lake) / name, clock=Past(0.1))
                job = await jobs.enter_async_context(table.write(**APPEND, tasks=FILES))
                batches = [rows(value) for value in values]
                await run_sync(partial(tallymark.write_task, job.ticket, batches, task=0))
            os.kill(os.getpid(), signal.SIGKILL)

    anyio.run(die, backend="trio")


@contextmanager
def streaming(folder: Path, service: SharedServiceSettings) -> Iterator[None]:
    """Write by a service, with several tasks, for as long as the block runs; then commit."""
    over = threading.Event()

    def batches(task: int) -> Iterator[pa.RecordBatch]:
        for number in count(task):
            if over.wait(0.5):
                return
            yield rows(day(24 * (number % 7)))

    async def run() -> None:
        async with tallymark.open_table(folder).write(**APPEND, service=service, tasks=FILES) as job:
            reports: list[TaskReport] = []

            async def work(task: int) -> None:
                reports.append(await run_sync(partial(tallymark.write_task, job.ticket, batches(task), task=task)))

            async with anyio.create_task_group() as tasks:
                for task in range(4):
                    tasks.start_soon(work, task)
            await job.commit(reports)

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(lambda: anyio.run(run, backend="trio"))
        try:
            yield
        finally:
            over.set()
            future.result(60)
