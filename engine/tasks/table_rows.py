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


def change_rows(
    batch: pa.RecordBatch, ticket: WriteTicket, schema: pa.Schema | None = None, *, may_lack: bool = True
) -> pa.RecordBatch:
    """Return the same in ``change_schema``, or some columns of it. With ``may_lack``, as in deletes, what the batch
    lacks is null.

    Raises as ``table_rows``.
    """
    schema = change_schema(ticket) if schema is None else schema
    static = () if ticket.partition is None else ticket.partition.columns
    needed = {*_needed(ticket), *static}
    for field in schema if may_lack else ():
        if field.name not in needed and field.name not in batch.schema.names:
            batch = batch.append_column(field, pa.nulls(batch.num_rows, field.type))
    return rows_in(schema, batch, partition_by=ticket.partition_by, partition=ticket.partition)


def change_schema(ticket: WriteTicket) -> pa.Schema:
    """Return the schema of changes: a row that deletes has the key, its partition where the key is unique there, and
    perhaps nothing else. Without a key it may lack everything.
    """
    needed = _needed(ticket)
    return pa.schema([field if field.name in needed else field.with_nullable(True) for field in ticket.schema])


def _needed(ticket: WriteTicket) -> frozenset[str]:
    key = ticket.changed_by
    if key is None:
        return frozenset()
    return frozenset([*key.record_key, *(ticket.partition_by if key.unique_in == "partition" else ())])


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
