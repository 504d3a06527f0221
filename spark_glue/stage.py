"""Run the tasks of a write as one Spark stage, and bring their reports home."""

import functools
import re
from collections.abc import Iterable, Iterator

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tallymark.engine.errors import InvalidRequest, JobFailed, TallymarkError
from tallymark.engine.files.report import TaskReport
from tallymark.engine.files.task_writer import write_task
from tallymark.engine.files.ticket import WriteTicket

REPORT_SCHEMA = pa.schema([pa.field("report", pa.binary(), nullable=False)])


def run_tasks(df: DataFrame, ticket: WriteTicket) -> list[TaskReport]:
    """Write all rows; returns the report of the winning attempt of each task, as Spark counts winners.

    Raises:
        JobFailed: Spark gave up.
        InvalidRequest: a task met rows that the table does not take.
    """
    # One action, once: each further one would run the tasks again.
    try:
        rows = df.mapInArrow(functools.partial(write_partition, ticket), "report binary").collect()
    except (PySparkException, Py4JError) as error:
        raise _own_error(error) from None
    return [TaskReport.decode(bytes(row.report)) for row in rows]


def write_partition(ticket: WriteTicket, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The task: Arrow batches in, one row with its report out."""
    context = TaskContext.get()
    assert context is not None, "runs on an executor"
    report = write_task(
        ticket,
        batches,
        task=context.partitionId(),
        attempt=context.taskAttemptId(),
        stage=context.stageId(),
    )
    yield pa.RecordBatch.from_pylist([{"report": report.encode()}], schema=REPORT_SCHEMA)


def _own_error(error: Exception) -> TallymarkError:
    """One error with the task's last word instead of pages of Python and Java stacks; those are in ``details``."""
    text = str(error)
    raised = re.findall(r"^(?:[\w.]+\.)?(\w+): (.+)$", _worker_traceback(text), flags=re.MULTILINE)
    name, message = raised[-1] if raised else (type(error).__name__, text.strip().partition("\n")[0])
    if name == InvalidRequest.__name__:
        return InvalidRequest(message)
    return JobFailed(f"Spark gave up on a task: {name}: {message}", details=text)


def _worker_traceback(text: str) -> str:
    """The Python part of what Spark says, which stands before the JVM's stack."""
    return text.partition("Traceback (most recent call last):")[2].partition("\n\tat ")[0]
