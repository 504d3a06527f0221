"""Tasks of a write as one Spark stage, and their reports."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from tallymark.engine.sizing.task_plan import decode_task_plan, encode_task_plan
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.task_writer import write_task
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.spark_glue.bootstrap import begun
from tallymark.spark_glue.failure import own_errors
from tallymark.spark_glue.routing import Tasks
from tallymark.spark_glue.session import is_connected
from tallymark.spark_glue.written import Written

REPORT_SCHEMA = pa.schema([pa.field("report", pa.binary(), nullable=False)])


def run_tasks(
    df: DataFrame,
    ticket: WriteTicket,
    *,
    planned: Tasks = (),
    written: Written | None = None,
    task: Callable[..., Iterator[pa.RecordBatch]] | None = None,
) -> list[TaskReport]:
    """Write all rows. Return the report of the winning attempt of each task, as Spark counts winners.

    ``planned`` are the files of each of the first Spark partitions. ``written`` receives each task's counts at its end.
    ``task`` is ``write_partition``, or takes its place.

    Raises:
        JobFailed: Spark gave up.
        InvalidRequest: a task had rows that the table does not accept.
    """
    task = task or write_partition
    if planned:
        task = functools.partial(task, planned=[encode_task_plan(files) for files in planned])
    if written is not None:
        task = functools.partial(task, written=written)
    with own_errors(df.sparkSession), _sent(df, task, ticket) as run:
        # One action, once: each further one would run the tasks again.
        rows = df.mapInArrow(run, "report binary").collect()
    return [TaskReport.decode(bytes(row.report)) for row in rows]


@contextmanager
def _sent(
    df: DataFrame, task: Callable[..., Iterator[pa.RecordBatch]], ticket: WriteTicket
) -> Iterator[Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]]:
    """Yield the task with its ticket, ready to travel.

    A ticket with the key to the job's service travels in a broadcast, which Spark writes to a file of its own: py4j
    logs whatever else the driver sends to the JVM at level DEBUG. Spark Connect has no broadcasts: there it is part of
    the task.
    """
    if ticket.service is None or is_connected(df.sparkSession):
        yield begun(functools.partial(task, ticket))
        return
    broadcast = df.sparkSession.sparkContext.broadcast(ticket)
    try:
        yield begun(task, broadcast)
    finally:
        with suppress(Exception):  # a stopped session has none left, and has its own error
            broadcast.destroy()


def write_partition(
    ticket: WriteTicket,
    batches: Iterable[pa.RecordBatch],
    *,
    planned: Sequence[bytes] = (),
    written: Written | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the task: Arrow batches in, one row with its report out."""
    context = TaskContext.get()
    assert context is not None, "runs on an executor"
    number = context.partitionId()
    report = write_task(
        ticket,
        batches,
        task=number,
        attempt=context.taskAttemptId(),
        stage=context.stageId(),
        planned=decode_task_plan(planned[number]) if number < len(planned) else (),
    )
    if written is not None:
        written.add(report)
    yield pa.RecordBatch.from_pylist([{"report": report.encode()}], schema=REPORT_SCHEMA)
