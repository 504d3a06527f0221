"""Run the tasks of a write as one Spark stage, and bring their reports home."""

import functools
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tallymark.engine.errors import InvalidRequest, JobFailed, TallymarkError
from tallymark.engine.files.report import TaskReport
from tallymark.engine.files.task_writer import write_task
from tallymark.engine.files.ticket import WriteTicket
from tallymark.spark_glue.written import Written

REPORT_SCHEMA = pa.schema([pa.field("report", pa.binary(), nullable=False)])


def run_tasks(df: DataFrame, ticket: WriteTicket, *, written: Written | None = None) -> list[TaskReport]:
    """Write all rows; returns the report of the winning attempt of each task, as Spark counts winners.

    ``written`` is told of each task as it ends, for those who watch.

    Raises:
        JobFailed: Spark gave up.
        InvalidRequest: a task met rows that the table does not take.
    """
    task = functools.partial(write_partition, ticket)
    if written is not None:
        task = functools.partial(task, written=written)
    # One action, once: each further one would run the tasks again.
    with own_errors():
        rows = df.mapInArrow(task, "report binary").collect()
    return [TaskReport.decode(bytes(row.report)) for row in rows]


def write_partition(
    ticket: WriteTicket, batches: Iterable[pa.RecordBatch], *, written: Written | None = None
) -> Iterator[pa.RecordBatch]:
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
    if written is not None:
        written.add(report)
    yield pa.RecordBatch.from_pylist([{"report": report.encode()}], schema=REPORT_SCHEMA)


@contextmanager
def own_errors() -> Iterator[None]:
    """Errors of Spark's as ours. Raises JobFailed, or InvalidRequest where a task said so."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise _own_error(error) from None


def _own_error(error: Exception) -> TallymarkError:
    """One error with the task's last word instead of pages of Python and Java stacks; those are in ``details``."""
    text = str(error)
    raised = _LAST_WORD.findall(_worker_traceback(text))
    if not raised:
        return JobFailed(f"Spark gave up on a task: {_jvm_word(error, text)}", details=text)
    name, message = raised[-1]
    if name == f"{InvalidRequest.__module__}.{InvalidRequest.__name__}":
        return InvalidRequest(message)
    said = ": ".join(filter(None, (name.rpartition(".")[2], message)))
    return JobFailed(f"Spark gave up on a task: {said}{_REMEDIES.get(name, '')}", details=text)


_LAST_WORD = re.compile(r"^[ ]+.*\n([A-Za-z_][\w.]*)(?:: (.*))?$", flags=re.MULTILINE)
"""The first line after a Python stack: the exception's class, and the first line of its message."""

_REMEDIES = {
    "ModuleNotFoundError": "; executors cannot import it: install it where they run, pass it by --py-files, "
    "or point PYSPARK_PYTHON at a Python that has it"
}


def _worker_traceback(text: str) -> str:
    """The Python part of what Spark says, which stands before the JVM's stack."""
    return text.partition("Traceback (most recent call last):")[2].partition("\n\tat ")[0]


def _jvm_word(error: Exception, text: str) -> str:
    """Where no Python code raised: a worker was lost, or the JVM's own code failed."""
    lost = re.search(r"most recent failure: (.+)", text)
    return lost[1] if lost else f"{type(error).__name__}: {_first_line(text)}"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
