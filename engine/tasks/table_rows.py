"""Conversion of a write's batches to rows of its table."""

from collections.abc import Sequence

import pyarrow as pa

from tallymark.engine.arrow.conform import conform
from tallymark.engine.partitions.columns import check_static, filled
from tallymark.engine.partitions.static import StaticPartition
from tallymark.engine.tasks.ticket import WriteTicket


def table_rows(batch: pa.RecordBatch, ticket: WriteTicket) -> pa.RecordBatch:
    """Return the same rows in exactly the table's schema, static columns filled in.

    Raises:
        InvalidRequest: they do not fit it, or have other values than the static ones.
    """
    return rows_in(ticket.schema, batch, partition_by=ticket.partition_by, partition=ticket.partition)


def rows_in(
    schema: pa.Schema, batch: pa.RecordBatch, *, partition_by: Sequence[str], partition: StaticPartition | None
) -> pa.RecordBatch:
    """Return the same for a schema that may be a part of the table's; it has the partition columns."""
    if partition is not None:
        batch = filled(batch, partition, schema)
    rows = conform(batch, schema, tuple(partition_by))
    if partition is not None:
        check_static(rows, partition)
    return rows
