"""What goes wrong inside Spark's tasks, upstream of the writer.

These functions run on executors, which cannot import the tests: they are shipped by value.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame, SparkSession

WAIT_S = 120.0
"""How long a task waits for what a test makes happen: far beyond what any loaded machine needs."""

T = TypeVar("T")
Fault = Callable[[], None]


def with_fault(df: DataFrame, fault: Fault, *, task: int = 0, after_batches: int = 3) -> DataFrame:
    """The same rows; in the given task, once a few batches are on their way, the fault happens."""
    return df.mapInArrow(partial(_faulty, fault, task, after_batches), df.schema)


def _faulty(fault: Fault, task: int, after_batches: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    assert context is not None
    for number, batch in enumerate(batches):
        if number == after_batches and context.partitionId() == task:
            fault()
        yield batch


def boom() -> None:
    raise RuntimeError("boom")


def meet(mine: Path, theirs: Path) -> None:
    """Go on only when the other has come here too."""
    mine.touch()
    await_that(theirs.exists)


def fail_when(flag: Path) -> None:
    """Raise once the flag is there."""
    await_that(flag.exists)
    boom()


def running_tasks(spark: SparkSession) -> int:
    """Tasks that executors are busy with, those of failed jobs included; asked by the test, not by a task."""
    executors = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
    return sum(executor.numRunningTasks() for executor in executors)


def await_that(true: Callable[[], T]) -> T:
    never = threading.Event()
    for _ in range(round(WAIT_S / 0.02)):
        if value := true():
            return value
        never.wait(0.02)
    raise TimeoutError(f"not within {WAIT_S} s")


cloudpickle.register_pickle_by_value(sys.modules[__name__])
