"""A write that is only planned: one Spark job counts the rows, and nothing is put."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import pyarrow as pa
from anyio.from_thread import BlockingPortal
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tallymark.engine.files.static_columns import missing_columns
from tallymark.engine.writes.incoming import CountedRows, Incoming
from tallymark.engine.writes.plan import WritePlan
from tallymark.engine.writes.table import Table
from tallymark.spark_glue.failure import own_errors
from tallymark.spark_glue.key_columns import KeyColumns
from tallymark.spark_glue.numbered import numbered
from tallymark.spark_glue.profile import plain_bytes_column
from tallymark.spark_glue.schema import arrow_schema


def planned(
    portal: BlockingPortal,
    df: DataFrame,
    table: Table,
    plan: Callable[[Incoming], Awaitable[WritePlan]],
    *,
    static: Mapping[str, object] | None,
    is_sized: bool,
) -> WritePlan:
    """The plan by the rows of the DataFrame. What can be refused without them is refused before they are counted.

    ``static`` are the values of a static partition. Of rows whose files are sized the bytes are counted, too.
    """
    without_rows = portal.call(plan, ())
    if without_rows.committed_at is not None:
        return without_rows
    size = None
    if is_sized:
        found = portal.call(table.properties)
        size = plain_bytes_column(df, found.schema if found else _new_schema(df, static or {}), static or {})
    return portal.call(plan, counted_rows(df, without_rows.partition_by, size))


def _new_schema(df: DataFrame, static: Mapping[str, object]) -> pa.Schema:
    """Of a table that is not there yet."""
    schema = arrow_schema(df.schema)
    return pa.schema([*schema, *missing_columns(schema, static, table=None)])


def counted_rows(df: DataFrame, partition_by: Sequence[str], plain_bytes: Column | None = None) -> CountedRows:
    """By one Spark job: the rows of each combination of partition values in each of the DataFrame's own partitions.

    These are the tasks of the write, but where its files are sized, and where adaptive execution merges partitions of a
    shuffle: it goes by their size, and fewer columns are shuffled here.
    """
    keys = KeyColumns(df, partition_by)
    size = f.lit(0).cast("long") if plain_bytes is None else plain_bytes
    placed = numbered(df).select(*keys.columns, f.spark_partition_id().alias("task"), size.alias("plain_bytes"))
    counts = f.count(f.lit(1)).alias("rows"), f.sum("plain_bytes").alias("plain_bytes")
    with own_errors(df.sparkSession):
        found = placed.groupBy(*keys.columns, "task").agg(*counts).collect()
    sizes = None if plain_bytes is None else [row["plain_bytes"] for row in found]
    return CountedRows(keys.batch(found), [row["rows"] for row in found], sizes)
