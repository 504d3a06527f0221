"""Requests of a whole write on the S3 stand-in, by the number of files that it commits: from its reservation to the end
of its cleaning.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import anyio
import anyio.to_thread
import pyarrow as pa

from tallymark.bench.loopback import seen
from tallymark.bench.results import Table, column, seconds
from tallymark.bench.stores import far
from tallymark.engine.table import Table as DataTable
from tallymark.engine.table import open_table
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.task_writer import write_task
from tallymark.engine.tasks.ticket import WriteTicket

COUNTS = (100, 1_000, 10_000)

LATENCY_S = 0.03

TASKS = 8
"""At once; each has rows of its own partitions."""

_FIELDS: list[tuple[str, pa.DataType]] = [("value", pa.int64()), ("p", pa.string())]

SCHEMA = pa.schema(_FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRow:
    files: int = column("files")
    puts: int = column("puts")
    puts_beside_files: int = column("puts beside the files")
    gets: int = column("gets")
    heads: int = column("heads")
    lists: int = column("lists")
    deletes: int = column("deletes")
    commit_s: float = column("commit", seconds)
    """From the last task's report to the end of the write."""


def table(counts: Sequence[int] = COUNTS) -> Table:
    title = f"requests of an append to as many partitions by {TASKS} tasks, {seconds(LATENCY_S)} per request"
    return Table(title=title, rows=[anyio.run(measure, count, backend="trio") for count in counts])


async def measure(count: int) -> CommitRow:
    with far(LATENCY_S, 0.0) as store:
        table = open_table(store.url, options=store.options)
        partitions = [f"{number:06}" for number in range(count)]
        await _append(table, partitions)  # makes the table and its partitions
        read = partial(seen, str(store.options.endpoint))
        await anyio.to_thread.run_sync(read)
        commit_s = await _append(table, partitions)
        found = await anyio.to_thread.run_sync(read)
    puts = found.get("requests_put", 0)
    return CommitRow(
        files=count,
        puts=puts,
        puts_beside_files=puts - count,
        gets=found.get("requests_get", 0),
        heads=found.get("requests_head", 0),
        lists=found.get("requests_list", 0),
        deletes=found.get("requests_delete", 0),
        commit_s=commit_s,
    )


async def _append(table: DataTable, partitions: Sequence[str]) -> float:
    """Return the seconds that the commit took."""
    async with table.write(schema=SCHEMA, mode="append", partition_by=["p"]) as job:
        reports = await anyio.to_thread.run_sync(_tasks, job.ticket, partitions)
        started = anyio.current_time()
        await job.commit(reports)
    return anyio.current_time() - started


def _tasks(ticket: WriteTicket, partitions: Sequence[str]) -> list[TaskReport]:
    shares = [partitions[number::TASKS] for number in range(TASKS)]
    with ThreadPoolExecutor(TASKS) as threads:
        running = [
            threads.submit(write_task, ticket, list(_rows(share)), task=number)
            for number, share in enumerate(shares)
            if share
        ]
        return [each.result() for each in running]


def _rows(partitions: Sequence[str]) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch([pa.array(range(len(partitions)), pa.int64()), pa.array(partitions)], schema=SCHEMA)


if __name__ == "__main__":
    from tallymark.bench.command import print_table

    print_table(table())
