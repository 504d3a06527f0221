"""Workload profile of a DataFrame, by one Spark job: rows and bytes per partition."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tallymark.engine.arrow.plain_size import fixed_bytes, is_text
from tallymark.engine.partitions.static import StaticPartition
from tallymark.engine.sizing.profile import IncomingRows, added_up
from tallymark.engine.tasks.partition_keys import partition_paths
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.spark_glue.failure import own_errors
from tallymark.spark_glue.key_columns import KeyColumns
from tallymark.spark_glue.numbered import column_name, numbered


@dataclass(frozen=True, slots=True)
class Profile:
    """Only one row per group was sent to the driver."""

    incoming: tuple[IncomingRows, ...]
    """Rows of each partition, sorted by path."""
    paths: dict[int, str]
    """The partition path of each group, by ``KeyColumns.hash``. Two groups may be one partition: null and the empty
    string are.
    """

    @property
    def plain_bytes(self) -> int:
        return sum(rows.plain_bytes or 0 for rows in self.incoming)


def profiled(df: DataFrame, ticket: WriteTicket) -> Profile:
    """Return the rows of the DataFrame by partition, in the measure of ``plain_bytes``, exactly.

    Raises:
        InvalidRequest: a row is in a partition that this write may not touch, or a value fits no path.
        JobFailed: Spark gave up.
    """
    keys = KeyColumns(df, ticket.partition_by)
    size = plain_bytes_column(df, ticket.schema, static_values(ticket.partition))
    counts = f.count(f.lit(1)).alias("rows"), f.sum(size).alias("plain_bytes")
    grouped = numbered(df).groupBy(*keys.columns).agg(*counts)
    with own_errors(df.sparkSession):
        found = grouped.select("*", _or_one(keys.hash()).alias("hash")).where("rows > 0").collect()
    paths = partition_paths(
        keys.batch(found),
        len(found),
        schema=ticket.schema,
        partition_by=ticket.partition_by,
        partition=ticket.partition,
        guard=ticket.guard,
    )
    placed = list(zip(paths, found, strict=True))
    incoming = added_up(IncomingRows(path, row.rows, row.plain_bytes) for path, row in placed)
    return Profile(incoming, {row.hash: path for path, row in placed})


def plain_bytes_column(df: DataFrame, schema: pa.Schema, static: Mapping[str, object]) -> Column:
    """Return the expression of a row's ``plain_bytes`` in the table's schema, for the numbered DataFrame.

    ``static`` are the values of the static columns; the DataFrame may lack these.
    """
    lacking = [value for name, value in static.items() if name not in df.columns]
    total = f.lit(fixed_bytes(schema) + sum(len(value.encode()) for value in lacking if isinstance(value, str)))
    for place, name in enumerate(df.columns):
        if name in schema.names and is_text(schema.field(name).type):
            total += f.coalesce(f.octet_length(column_name(place)), f.lit(0)).cast("long")
    return total.cast("long")


def _or_one(hash_: Column | None) -> Column:
    """Return the hash, or a constant for a table without partitions, or of one: all rows are one group."""
    return f.lit(0).cast("long") if hash_ is None else hash_


def static_values(partition: StaticPartition | None) -> Mapping[str, object]:
    """Return the values of a static partition by column."""
    return {} if partition is None else dict(zip(partition.columns, partition.values, strict=True))
