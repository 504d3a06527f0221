"""Sample of rows, encoded to measure their size and then discarded."""

from collections.abc import Iterable

import pyarrow as pa

from tallymark.engine.arrow.encoding import parquet_writer
from tallymark.engine.arrow.plain_size import plain_bytes
from tallymark.engine.sizing.profile import Sample
from tallymark.engine.tasks.table_rows import table_rows
from tallymark.engine.tasks.ticket import WriteTicket


def sample_task(ticket: WriteTicket, batches: Iterable[pa.RecordBatch]) -> Sample | None:
    """Return the size of the batches' rows as one row group of the ticket's job; None if there are none.

    Batches are consumed, and kept, until they have as many bytes. They should be chosen like the rows of a file, and
    arrive in their order; here they are sorted by partition.

    Raises:
        InvalidRequest: the rows do not fit the ticket's schema.
    """
    return sample_of(ticket, _gathered(ticket, batches))


def sample_of(ticket: WriteTicket, rows: pa.Table) -> Sample | None:
    """Return the same for rows of the ticket's schema."""
    if not rows.num_rows:
        return None
    # Sorting is stable: within a partition the order stays.
    rows = rows.sort_by([(name, "ascending") for name in ticket.partition_by]) if ticket.partition_by else rows
    try:
        return Sample(rows.num_rows, plain_bytes(rows), _encoded_bytes(rows, ticket))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None  # Parquet cannot hold these rows: the task that is to write them says so, naming their partition


def _gathered(ticket: WriteTicket, batches: Iterable[pa.RecordBatch]) -> pa.Table:
    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        gathered.append(table_rows(batch, ticket))
        size += gathered[-1].nbytes
        if size >= ticket.row_group_bytes:
            break
    return pa.Table.from_batches(gathered, ticket.schema)


def _encoded_bytes(rows: pa.Table, ticket: WriteTicket) -> int:
    with pa.BufferOutputStream() as sink, parquet_writer(sink, ticket.schema, ticket.settings, rows) as writer:
        writer.write_table(rows, row_group_size=rows.num_rows)
        return sink.tell() - len("PAR1")
