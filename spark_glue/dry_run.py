"""A write that is only planned: one Spark job counts the rows, and nothing is put."""

from collections.abc import Awaitable, Callable, Sequence

import pyarrow as pa
from anyio.from_thread import BlockingPortal
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tallymark.engine.writes.incoming import CountedRows, Incoming
from tallymark.engine.writes.plan import WritePlan
from tallymark.spark_glue.failure import own_errors
from tallymark.spark_glue.schema import arrow_schema


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
    names = [name for name in partition_by if name in df.columns]  # a static one may be missing
    keys = [f.col(f"`{name.replace('`', '``')}`").alias(f"key{position}") for position, name in enumerate(names)]
    grouped = df.select(*keys, f.spark_partition_id().alias("task")).groupBy(
        *(f"key{position}" for position in range(len(names))), "task"
    )
    with own_errors(df.sparkSession):
        found = grouped.count().collect()
    schema = arrow_schema(df.schema)
    columns = [pa.array([row[place] for row in found], schema.field(name).type) for place, name in enumerate(names)]
    return CountedRows(pa.RecordBatch.from_arrays(columns, names), [row["count"] for row in found])
