"""A write job on HDFS by the engine alone, its tasks in threads, and something that happens in the middle of it."""

import io
import threading
from collections.abc import Callable, Iterator
from functools import partial

import anyio
import anyio.to_thread
import pyarrow as pa
import pyarrow.parquet as pq

from tallymark import TaskSettings
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.table import open_table
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.task_writer import write_task
from tests.table_invariants import committed_files

COLUMNS: dict[str, pa.DataType] = {"id": pa.int64(), "part": pa.string(), "payload": pa.string()}
SCHEMA = pa.schema(COLUMNS)

TASKS = 3
ROWS = 4
"""In each half of a task."""

WIDTH = 400_000
"""Letters of a payload: a half is more than what is buffered, so that the DataNodes hold bytes of an open file."""

EAGER = TaskSettings(row_group_bytes=1, compression="none", open_file_count=1)


def write(url: str, *, first_id: int, amid: Callable[[], None] = lambda: None) -> WriteResult:
    """An append of TASKS files. ``amid`` happens once, when each task has a file half written."""
    return anyio.run(partial(_write, url, first_id, amid), backend="trio")


def ids(first_id: int) -> list[int]:
    """What such a write appends."""
    return list(range(first_id, first_id + TASKS * 2 * ROWS))


def committed_ids(objects: dict[str, bytes]) -> list[int]:
    tables = [pq.read_table(io.BytesIO(objects[path]), columns=["id"]) for path in committed_files(objects)]
    found: list[int] = [id_ for table in tables for id_ in table["id"].to_pylist()]  # type: ignore[misc]
    return sorted(found)


async def _write(url: str, first_id: int, amid: Callable[[], None]) -> WriteResult:
    middle = threading.Barrier(TASKS, action=amid)
    reports: list[TaskReport] = []

    async def run(task: int) -> None:
        work = partial(write_task, job.ticket, _batches(first_id, task, middle), task=task)
        reports.append(await anyio.to_thread.run_sync(work))

    async with open_table(url).write(schema=SCHEMA, mode="append", partition_by=["part"], tasks=EAGER) as job:
        async with anyio.create_task_group() as tasks:
            for task in range(TASKS):
                tasks.start_soon(run, task)
        return await job.commit(reports)


def _batches(first_id: int, task: int, middle: threading.Barrier) -> Iterator[pa.RecordBatch]:
    first = first_id + task * 2 * ROWS
    yield _batch(range(first, first + ROWS))
    middle.wait()
    yield _batch(range(first + ROWS, first + 2 * ROWS))


def _batch(numbers: range) -> pa.RecordBatch:
    rows = [{"id": number, "part": "p", "payload": f"{number}".rjust(WIDTH, ".")} for number in numbers]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
