"""A table in Hudi's format, version 6, for servers that look at its timeline."""

from pathlib import Path

import anyio
import anyio.to_thread
import pyarrow as pa

from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.table import Table, open_table
from tallymark.engine.tasks.task_writer import write_task

_COLUMNS: list[tuple[str, pa.DataType]] = [("event_date", pa.string()), ("n", pa.int64())]
SCHEMA = pa.schema(_COLUMNS)


def make_table(folder: Path) -> Path:
    """One of ours with one commit; the folder."""
    anyio.run(_append, open_table(folder), backend="trio")
    return folder


async def _append(table: Table) -> None:
    async with table.write(schema=SCHEMA, mode="append", partition_by=("event_date",)) as job:
        await write_rows(job, "2025-12-31")


async def write_rows(job: WriteJob, *dates: str) -> None:
    """A row of each, and commit."""
    rows = pa.table({"event_date": list(dates), "n": list(range(len(dates)))}, schema=SCHEMA)
    report = await anyio.to_thread.run_sync(lambda: write_task(job.ticket, rows, task=0))
    await job.commit([report])
