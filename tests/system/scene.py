"""What the tests of real kills share: a table to begin with, a rival's write, and the judgement of the disk."""

from functools import partial
from pathlib import Path
from urllib.parse import quote

import anyio
import anyio.to_thread
import duckdb
import pyarrow as pa
from hudi import HudiTable

from tallymark.backends.local import LocalBackend
from tallymark.engine.table import open_table
from tallymark.engine.tasks.task_writer import write_task
from tests.support.storage import exactly_the_committed_files, objects
from tests.system.pool_worker import SCHEMA, Row, TaskPlan
from tests.table_invariants import decisions, table_is_at_rest

BASE = (TaskPlan(task=0, first_id=0, parts=("a", "b", "c")), TaskPlan(task=1, first_id=100, parts=("a", "b", "c")))
"""What a table holds before anything goes wrong: six files in three parts."""

RIVAL = TaskPlan(first_id=9000, parts=("b", "z"))
"""What the next writer appends."""


def append(table: Path, *tasks: TaskPlan) -> None:
    """A write of this very process, from its instant to its end."""

    async def write() -> None:
        job_of = open_table(table, backend=LocalBackend(table)).write
        async with job_of(schema=SCHEMA, mode="append", partition_by=["part"]) as job:
            run = anyio.to_thread.run_sync
            reports = [
                await run(partial(write_task, job.ticket, arrow_table(task.rows), task=task.task)) for task in tasks
            ]
            await job.commit(reports)

    anyio.run(write, backend="trio")


def rows_of(*tasks: TaskPlan) -> list[Row]:
    return [row for task in tasks for row in task.rows]


def arrow_table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def assert_at_rest(table: Path, rows: list[Row], *, scratch: bool = False) -> set[str]:
    """The disk holds exactly what was committed, nothing of any other writer, and readers that nobody here wrote see
    exactly these rows in it. A writer that was caught in the middle of a put may leave scratch. Returns the data files.
    """
    table_is_at_rest(objects(table))
    committed = exactly_the_committed_files(table, scratch=scratch)
    wanted = sorted(rows)
    for reader, read in READERS.items():
        found = sorted(read(table))
        assert [row[:2] for row in found] == [row[:2] for row in wanted], f"{reader} sees other rows"
        assert found == wanted, f"{reader} sees other values"
    return committed


def read_by_duckdb(table: Path) -> list[Row]:
    """The plain directory; partition columns from the paths."""
    with duckdb.connect() as connection:
        query = "SELECT id, part, payload FROM read_parquet($1, hive_partitioning = true, hive_types_autocast = false)"
        found: list[Row] = connection.execute(query, [f"{table}/**/*.parquet"]).fetchall()
        return found


def read_by_hudi(table: Path) -> list[Row]:
    """hudi-rs, on the timeline."""
    found = pa.Table.from_batches(HudiTable("file://" + quote(str(table))).read()).select(SCHEMA.names)
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


READERS = {"DuckDB": read_by_duckdb, "hudi-rs": read_by_hudi}


def outcomes(table: Path) -> list[str]:
    """What each entry of the log says, in order."""
    return [entry["kind"] for entry in decisions(objects(table)).values()]
