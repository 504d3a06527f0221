"""Workload profile of Arrow batches, for engines that have their rows in that form."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tallymark.engine.arrow.plain_size import fixed_bytes, is_text
from tallymark.engine.partitions.index import PartitionedBatch, PartitionIndex
from tallymark.engine.sizing.profile import IncomingRows, WorkloadProfile
from tallymark.engine.tasks.sample import sample_of
from tallymark.engine.tasks.table_rows import table_rows
from tallymark.engine.tasks.ticket import WriteTicket


def profile_batches(ticket: WriteTicket, batches: Iterable[pa.RecordBatch] | pa.Table) -> WorkloadProfile:
    """Return the rows and bytes of each partition, and an encoded sample of the first rows, for ``WriteJob.size``.

    The batches are read once, and only those of the sample are kept, which are one row group at most. An engine whose
    rows are spread over processes counts each part in its process, and passes ``WorkloadProfile.of(parts)``.

    Raises:
        InvalidRequest: what ``write_task`` would raise for these rows.
    """
    batches = batches.to_batches() if isinstance(batches, pa.Table) else batches
    index = PartitionIndex(ticket.partition_by, ticket.guard)
    rows: defaultdict[int, int] = defaultdict(int)
    size: defaultdict[int, int] = defaultdict(int)
    sample: list[pa.RecordBatch] = []
    room = ticket.row_group_bytes
    row_bytes = fixed_bytes(ticket.schema)
    for batch in batches:
        conformed = table_rows(batch, ticket)
        if not conformed.num_rows:
            continue
        if room > 0:
            sample.append(conformed)
            room -= conformed.nbytes
        for number, count, texts in _counted(index.place(conformed)):
            rows[number] += count
            size[number] += count * row_bytes + texts
    return WorkloadProfile(
        incoming=tuple(IncomingRows(index.path(number), rows[number], size[number]) for number in rows),
        sample=sample_of(ticket, pa.Table.from_batches(sample, ticket.schema)),
    )


def _counted(placed: PartitionedBatch) -> Iterable[tuple[int, int, int]]:
    """Return of each partition: its number, its rows, and the bytes of their texts."""
    texts: Any = pa.nulls(placed.batch.num_rows, pa.int64()).fill_null(0)
    for column in placed.batch.columns:
        if is_text(column.type):
            texts = pc.add(texts, pc.binary_length(column).fill_null(0).cast(pa.int64()))  # type: ignore[call-overload]
    counted = pa.table({"number": placed.numbers, "texts": texts}).group_by("number")
    sums = counted.aggregate([("texts", "count"), ("texts", "sum")])
    columns = (sums.column(name).to_pylist() for name in ("number", "texts_count", "texts_sum"))
    return zip(*columns, strict=True)
