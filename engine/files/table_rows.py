"""Batches as a write gets them, as rows of its table."""

import pyarrow as pa

from tallymark.engine.files.conform import conform
from tallymark.engine.files.static_columns import check_static, filled
from tallymark.engine.files.ticket import WriteTicket


def table_rows(batch: pa.RecordBatch, ticket: WriteTicket) -> pa.RecordBatch:
    """The same rows in exactly the table's schema, static columns filled in.

    Raises:
        InvalidRequest: they do not fit it, or have other values than the static ones.
    """
    if ticket.partition is not None:
        batch = filled(batch, ticket.partition, ticket.schema)
    rows = conform(batch, ticket.schema, ticket.partition_by)
    if ticket.partition is not None:
        check_static(rows, ticket.partition)
    return rows
