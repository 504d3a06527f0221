"""What the tests of real kills share: a table to begin with, a rival's write, and the judgement of the disk."""

from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import anyio.to_thread
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi import HudiTable

from tallymark.engine.table import open_table
from tallymark.engine.tasks.task_writer import write_task
from tests.support.place import Place
from tests.support.process import await_stopped
from tests.support.storage import exactly_the_committed_files, objects
from tests.system.forked import Fork
from tests.system.pool_driver import SIZING, planned_files, profile_of
from tests.system.pool_worker import SCHEMA, Row, Stopped, TaskPlan
from tests.table_invariants import commits, data_files, decisions, table_is_at_rest

BASE = (TaskPlan(task=0, first_id=0, parts=("a", "b", "c")), TaskPlan(task=1, first_id=100, parts=("a", "b", "c")))
"""What a table holds before anything goes wrong: six files in three parts."""

RIVAL = TaskPlan(first_id=9000, parts=("b", "z"))
"""What the next writer appends."""


def place_of(at: Path | Place) -> Place:
    return at if isinstance(at, Place) else Place(url=str(at), objects=lambda: objects(at))


def append(at: Path | Place, *tasks: TaskPlan, fills: bool = False, **declared: Any) -> None:
    """Write from this process, from the job's instant to its end; ``declared`` is what creates the table."""
    place = place_of(at)

    async def write() -> None:
        table = open_table(place.url, options=place.options)
        sizing = SIZING if fills else None
        named: Any = {"partition_by": ["part"], "sizing": sizing, **declared}
        async with table.write(schema=SCHEMA, mode="append", **named) as job:
            planned = planned_files(await job.size(profile_of(tasks)), tasks)
            reports = [
                await anyio.to_thread.run_sync(
                    partial(write_task, job.ticket, arrow_table(task.rows), task=task.task, planned=files)
                )
                for task, files in zip(tasks, planned, strict=True)
            ]
            await job.commit(reports)

    anyio.run(write, backend="trio")


def stopped_tasks(driver: Fork) -> list[Stopped]:
    """Return both tasks of the driver by number, once each has stopped itself."""
    tasks = sorted((driver.hear(Stopped) for _ in range(2)), key=lambda stopped: stopped.task)
    for task in tasks:
        await_stopped(task.pid)
    return tasks


def rows_of(*tasks: TaskPlan) -> list[Row]:
    return [row for task in tasks for row in task.rows]


def arrow_table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def assert_at_rest(at: Path | Place, rows: list[Row], *, scratch: bool = False) -> set[str]:
    """Assert that storage has exactly what was committed, with these rows; return the data files.

    On a local disk, readers that are not ours find these rows too, and nothing of any other writer is left; a writer
    that was killed in the middle of a put may leave scratch.
    """
    place = place_of(at)
    found = place.objects()
    table_is_at_rest(found)
    files = data_files(found)
    readers = READERS if isinstance(at, Path) else {"Arrow": lambda _: _read_by_arrow(found)}
    for reader, read in readers.items():
        rows_found, wanted = sorted(read(Path(place.url))), sorted(rows)
        assert [row[:2] for row in rows_found] == [row[:2] for row in wanted], f"{reader} finds other rows"
        assert rows_found == wanted, f"{reader} finds other values"
    if isinstance(at, Path):
        assert exactly_the_committed_files(at, scratch=scratch) == set(files)
    return set(files)


def assert_next_write_restores(at: Path | Place, rows: list[Row], log: list[str], *, fills: bool = False) -> set[str]:
    """Append once more; the log then has these entries, and the table these rows and the appended ones."""
    place = place_of(at)
    with pytest.raises(AssertionError):
        table_is_at_rest(place.objects())  # otherwise the kill was too late to leave anything
    append(at, RIVAL, fills=fills)
    assert outcomes(at) == log
    assert bool(commits(place.objects())[-1]["removed"]) == fills, "it has filled a small file"
    return assert_at_rest(at, rows + rows_of(RIVAL), scratch=True)


def _read_by_arrow(objects: dict[str, bytes]) -> list[Row]:
    tables = [pq.read_table(pa.BufferReader(objects[path])).select(SCHEMA.names) for path in data_files(objects)]
    columns = pa.concat_tables(tables).columns
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


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


def outcomes(at: Path | Place) -> list[str]:
    """Return the kind of each entry of the log, in order."""
    return [entry["kind"] for entry in decisions(place_of(at).objects()).values()]
