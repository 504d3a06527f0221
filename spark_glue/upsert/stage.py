"""Tasks of an upsert or delete beside those of every write: keys, lookups, and changes instead of rows."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from tallymark.engine.tasks.merge import ACTION
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.upsert.keys import key_of, key_task
from tallymark.engine.upsert.locate import FILE, Lookup, hit_schema, locate_task
from tallymark.engine.upsert.routing import undecided
from tallymark.spark_glue.stage import REPORT_SCHEMA, write_partition

RIVAL = -1
"""Action of a row whose key has another row of equal order that is elsewhere or deletes it: its task refuses it."""


def key_partition(ticket: WriteTicket, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the task: the keys of the rows in, one row with its report out."""
    context = TaskContext.get()
    assert context is not None, "runs on an executor"
    report = key_task(ticket, batches, task=context.partitionId())
    yield pa.RecordBatch.from_pylist([{"report": report.encode()}], schema=REPORT_SCHEMA)


def hit_columns(ticket: WriteTicket) -> dict[str, str]:
    """Return the names of the columns of hits in the JVM, by those of ``hit_schema``."""
    return {name: f"hit{place}" for place, name in enumerate(hit_schema(ticket).names)}


def locate_partition(ticket: WriteTicket, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the task: lookups with the numbers of their first files in, hits out."""
    columns = hit_columns(ticket)
    for batch in batches:
        for row in batch.to_pylist():
            lookup = Lookup.decode(row["lookup"])
            paths = pa.array([file.path for file in lookup.files], pa.string())
            for hits in locate_task(ticket, lookup):
                found = pc.index_in(hits.column(FILE).cast(pa.string()), paths)
                files = pc.add(found, pa.scalar(row["first"], pa.int32()))
                yield pa.RecordBatch.from_arrays(
                    [files if name == FILE else hits.column(name) for name in columns], [*columns.values()]
                )


def change_partition(ticket: WriteTicket, batches: Iterable[pa.RecordBatch], **named: Any) -> Iterator[pa.RecordBatch]:
    """Yield the task: changes in, one row with its report out. Raises InvalidRequest for a ``RIVAL``."""
    yield from write_partition(ticket, _without_rivals(ticket, batches), **named)


def _without_rivals(ticket: WriteTicket, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rivals = batch.filter(pc.equal(batch.column(ACTION), pa.scalar(RIVAL, pa.int8())))
        if rivals.num_rows:
            raise undecided(rivals.select(key_of(ticket).record_key))
        yield batch
