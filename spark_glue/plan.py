"""Plan of a DataFrame's write: Spark counts the rows, and nothing is written."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial

import pyarrow as pa
from anyio.from_thread import BlockingPortal
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tallymark.backends.options import StorageOptions
from tallymark.engine.partitions.columns import missing_columns
from tallymark.engine.partitions.static import StaticPartition
from tallymark.engine.planning.input_rows import CountedRows, Incoming
from tallymark.engine.planning.write_plan import WritePlan
from tallymark.engine.settings import SizingSettings, TaskSettings
from tallymark.engine.table import Table
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile
from tallymark.spark_glue.failure import own_errors
from tallymark.spark_glue.key_columns import KeyColumns
from tallymark.spark_glue.numbered import numbered
from tallymark.spark_glue.schema import arrow_schema
from tallymark.spark_glue.sizing import workload


def planned(
    portal: BlockingPortal,
    df: DataFrame,
    table: Table,
    plan: Callable[[Incoming], Awaitable[WritePlan]],
    *,
    static: Mapping[str, object] | None,
    tasks: TaskSettings | None,
    sizing: SizingSettings | None,
) -> WritePlan:
    """Return the plan for the rows of the DataFrame. Requests that are invalid whatever the rows are refused before the
    rows are counted.

    ``static`` are the values of a static partition. If files are sized, rows are profiled as by the write.
    """
    without_rows = portal.call(plan, ())
    if without_rows.committed_at is not None:
        return without_rows
    if sizing is None or not sizing.is_on:
        return portal.call(plan, counted_rows(df, without_rows.partition_by))

    known = portal.call(table.properties)
    ticket = _trial(
        known.schema if known else _new_schema(df, static or {}),
        without_rows,
        static=static,
        tasks=tasks or TaskSettings(),
        max_file_bytes=sizing.max_file_bytes,
    )
    files = partial(portal.call, table.reference_files) if known else _no_files
    _, found = workload(df, ticket, files, sizing)
    return portal.call(plan, found)


def _no_files(_: Iterable[str]) -> tuple[DataFile, ...]:
    return ()


def _trial(
    schema: pa.Schema,
    plan: WritePlan,
    *,
    static: Mapping[str, object] | None,
    tasks: TaskSettings,
    max_file_bytes: int,
) -> WriteTicket:
    """Return a ticket without a job: rows are counted and encoded by it as tasks would, and nothing can be written."""
    return WriteTicket(
        url=plan.url,
        options=StorageOptions(),
        instant="",
        base=plan.position,
        schema=schema,
        partition_by=plan.partition_by,
        staging="",
        marker_kind="direct",
        service=None,
        settings=tasks,
        max_file_bytes=max_file_bytes,
        partition=None
        if static is None
        else StaticPartition.of(static, keyword="partition", schema=schema, partition_by=plan.partition_by),
        is_committed=True,
    )


def _new_schema(df: DataFrame, static: Mapping[str, object]) -> pa.Schema:
    """Return the schema of a table that does not exist yet."""
    schema = arrow_schema(df.schema)
    return pa.schema([*schema, *missing_columns(schema, static, table=None)])


def counted_rows(df: DataFrame, partition_by: Sequence[str]) -> CountedRows:
    """Count, by one Spark job, the rows of each combination of partition values in each of the DataFrame's own
    partitions.

    These are the tasks of the write, except where adaptive execution merges partitions of a shuffle: it merges by size,
    and fewer columns are shuffled here.
    """
    keys = KeyColumns(df, partition_by)
    placed = numbered(df).select(*keys.columns, f.spark_partition_id().alias("task"))
    with own_errors(df.sparkSession):
        found = placed.groupBy(*keys.columns, "task").count().collect()
    return CountedRows(keys.batch(found), [row["count"] for row in found])
