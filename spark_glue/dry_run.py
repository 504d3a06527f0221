"""A write that is only planned: one Spark job counts the rows, and nothing is put."""

from collections.abc import Awaitable, Callable, Sequence

from anyio.from_thread import BlockingPortal
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tallymark.engine.writes.incoming import CountedRows, Incoming
from tallymark.engine.writes.plan import WritePlan
from tallymark.spark_glue.failure import own_errors
from tallymark.spark_glue.key_columns import KeyColumns
from tallymark.spark_glue.numbered import numbered


def planned(portal: BlockingPortal, df: DataFrame, plan: Callable[[Incoming], Awaitable[WritePlan]]) -> WritePlan:
    """The plan by the rows of the DataFrame. What can be refused without them is refused before they are counted."""
    without_rows = portal.call(plan, ())
    if without_rows.committed_at is not None:
        return without_rows
    return portal.call(plan, counted_rows(df, without_rows.partition_by))


def counted_rows(df: DataFrame, partition_by: Sequence[str]) -> CountedRows:
    """By one Spark job: the rows of each combination of partition values in each of the DataFrame's own partitions.

    These are the tasks of the write, but where adaptive execution merges partitions of a shuffle: it goes by their
    size, and fewer columns are shuffled here.
    """
    keys = KeyColumns(df, partition_by)
    placed = numbered(df).select(*keys.columns, f.spark_partition_id().alias("task"))
    with own_errors(df.sparkSession):
        found = placed.groupBy(*keys.columns, "task").count().collect()
    return CountedRows(keys.batch(found), [row["count"] for row in found])
