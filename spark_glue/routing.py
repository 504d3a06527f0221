"""Shuffle that sends each row to the task of its planned file.

The task of a row depends on the row and the plan alone: a task that Spark repeats after a lost machine sends each row
to the same task as its first attempt, or rows would be lost and doubled. So a row is routed by its hash, and of the
files of its partition each gets about as many rows as are planned; equal rows go to one task, and its writer handles
their size.

All of it runs in the JVM, from a small table that Spark broadcasts, whatever the session's threshold.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tallymark.engine.sizing.plan import PlannedFile
from tallymark.spark_glue.key_columns import KeyColumns
from tallymark.spark_glue.numbered import column_name, numbered
from tallymark.spark_glue.row_hash import row_hash
from tallymark.spark_glue.shares import slots_of
from tallymark.spark_glue.task_key import task_key

Tasks = Sequence[Sequence[PlannedFile]]
"""The planned files of each task."""

_PLAN = "partition_hash long, total long, slots array<struct<share: long, own: int, other: int>>"


def routed(df: DataFrame, tasks: Tasks, paths: Mapping[int, str], partition_by: Sequence[str]) -> DataFrame:
    """Return the same rows, each in the Spark partition whose number is that of the task with its planned file.

    ``paths`` are the partitions by their hash. Rows of a partition for which no task has a file, as of a DataFrame that
    returns other rows each time, stay together, in some task.
    """
    if len(tasks) == 1:
        return df.repartition(1)
    columns = [column_name(place) for place in range(len(df.columns))]
    to_tasks = keyed(df, tasks, paths, partition_by).repartition(len(tasks), "task_key")
    return to_tasks.select(*columns).toDF(*df.columns)


def keyed(df: DataFrame, tasks: Tasks, paths: Mapping[int, str], partition_by: Sequence[str]) -> DataFrame:
    """Return the numbered rows with ``task_key``, by which Spark's shuffle finds their tasks."""
    partition = KeyColumns(df, partition_by).hash()
    hashed = numbered(df).select("*", row_hash(df).alias("row_hash"))
    hashed = hashed.select("*", (_nothing_of("row_hash") if partition is None else partition).alias("partition_hash"))
    plan = df.sparkSession.createDataFrame(list(_plan_rows(tasks, paths)), _PLAN)
    found = hashed.join(f.broadcast(plan), "partition_hash", "left")
    slot = found.select("*", f.expr("slots[CAST(pmod(row_hash, size(slots)) AS INT)]").alias("slot"))
    return slot.select(*numbered(df).columns, _task_key().alias("task_key"))


def _task_key() -> Column:
    """Return the key of a row's task. A second hash, of the first, chooses between the two tasks of the slot that the
    first one chose.
    """
    planned = "IF(pmod(xxhash64(row_hash), total) < slot.share, slot.own, slot.other)"
    return f.expr(f"coalesce({planned}, hash(partition_hash))")


def _nothing_of(column: str) -> Column:
    """Return 0 for each row. With a constant, Spark would not join by it, but compare each row with the whole plan."""
    return f.col(column).bitwiseAND(f.lit(0))


def _plan_rows(tasks: Tasks, paths: Mapping[int, str]) -> Iterator[tuple[int, int, list[tuple[int, int, int]]]]:
    """Yield the rows of ``_PLAN``, for each hash of a partition that has planned rows."""
    shares = _shares(tasks)
    for hash_, path in paths.items():
        if path in shares:
            keys, rows = zip(*((task_key(task), rows) for task, rows in shares[path]), strict=True)
            slots = [(slot.share, keys[slot.own], keys[slot.other]) for slot in slots_of(rows)]
            yield hash_, sum(rows), slots


def _shares(tasks: Tasks) -> dict[str, list[tuple[int, int]]]:
    """Return by partition the tasks that have a file of it, and how many incoming rows each is to get."""
    shares: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for task, files in enumerate(tasks):
        for file in files:
            if file.rows:
                shares[file.partition].append((task, file.rows))
    return shares
