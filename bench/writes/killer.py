"""A DataFrame whose write is killed half way: rows pass through a task that ends processes by SIGKILL.

Owns: what dies, and when. It stands before the write, in a Python worker of its own, on every side alike.
"""

import os
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tallymark.bench.writes.order import Kill

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

VICTIM = 2
"""The task that dies, or takes the job with it: with two at once, two others have ended by then."""

ROWS_BEFORE = 50_000
"""That the victim hands on: half of what it has."""

SETTLE_S = 2.0
"""For those to reach the files before all is over."""


def doomed(df: "DataFrame", kill: Kill) -> "DataFrame":
    """``executor``: the JVM of the victim's first attempt; Spark starts another, and the job goes on. ``job``: the
    user's Python and the driver's JVM; its executors have to be in that.
    """
    context = df.sparkSession.sparkContext
    assert context._gateway is not None
    driver = [os.getpid(), context._gateway.proc.pid] if kill == "job" else []
    return df.mapInArrow(partial(_until_killed, driver), df.schema)


def _until_killed(driver: Sequence[int], batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "runs on an executor"
    is_victim = context.partitionId() == VICTIM and context.attemptNumber() == 0
    passed = 0
    for batch in batches:
        if is_victim and passed >= ROWS_BEFORE:
            threading.Event().wait(SETTLE_S)
            _kill(driver or [_parent(os.getppid())])
        yield batch
        passed += batch.num_rows


def _kill(processes: Sequence[int]) -> None:
    for process in processes:
        os.kill(process, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _parent(pid: int) -> int:
    """The JVM above the daemon that has forked this worker."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
