"""Changes of one task, rows to write and keys to delete, merged into its planned files, a partition after the other."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.partitions.index import PartitionIndex
from tallymark.engine.tasks.merge import ACTION, ROW, Action, FileMerge, is_action
from tallymark.engine.tasks.report import ChangeCounts
from tallymark.engine.tasks.small_file_merge import BATCH_ROWS_MAX, Filling
from tallymark.engine.tasks.table_rows import change_rows
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile

HASH = "_tallymark_hash"
"""Column that changes, and batches of keys, may have: an integer that depends on the row alone. By the sum over all
rows a job sees that its input, computed twice, was the same.
"""

_CHECKSUMS = 1 << 64
"""Sums are taken modulo this number, as Arrow does, so that they do not depend on how rows are divided."""


def checksum(*sums: int) -> int:
    return sum(sums) % _CHECKSUMS


def hash_sum(hashes: Any) -> int:
    """Return the checksum of these rows; null counts as 0."""
    return checksum(pc.sum(hashes).as_py() or 0)


ReadOld = Callable[[Sequence[DataFile]], Iterable[tuple[DataFile, Iterator[pa.RecordBatch]]]]
"""Returns the files that are there, each with its rows."""


class Changes:
    def __init__(self, ticket: WriteTicket, partitions: PartitionIndex, filling: Filling, read: ReadOld) -> None:
        """``partitions`` and ``filling`` are those of the task."""
        self._ticket = ticket
        self._partitions = partitions
        self._filling = filling
        self._read = read
        self._merges: dict[int, FileMerge | None] = {}
        """The merge of each partition so far, the last of them in progress; None for one whose file is gone."""
        self._checksum = 0
        self.rewrites: list[DataFile] = []
        self.gone: list[str] = []

    @property
    def counts(self) -> ChangeCounts:
        merges = [merge for merge in self._merges.values() if merge is not None]
        return ChangeCounts(
            inserted=sum(merge.inserted for merge in merges),
            updated=sum(merge.updated for merge in merges),
            deleted=sum(merge.deleted for merge in merges),
            ignored=sum(merge.ignored for merge in merges),
            checksum=self._checksum,
        )

    def merged(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield rows to encode, each with the number of its partition.

        The batch has ``ROW`` and ``ACTION``, and may have ``HASH``; its rows are sorted by partition, and within one as
        ``FileMerge.apply`` needs them. Where all its rows delete, columns that it lacks are null.

        Raises:
            InvalidRequest: rows of a partition are not together, or do not fit the table; and what ``FileMerge``
                raises.
        """
        for start in range(0, batch.num_rows, BATCH_ROWS_MAX):  # deletes get all columns that they lack
            yield from self._merged(batch.slice(start, BATCH_ROWS_MAX))

    def _merged(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        rows = self._rows(batch)
        placed = self._partitions.place(rows)
        changes = rows
        for name in (ROW, ACTION):
            changes = changes.append_column(name, batch.column(name))
        for number in placed.partitions:
            if number not in self._merges:
                yield from self.finish()
                self._merges[number] = self._begun(self._partitions.path(number))
            elif number != next(reversed(self._merges)):
                raise InvalidRequest(
                    f"changes of partition {self._partitions.path(number)!r} are not together; sort the rows of a task "
                    "by partition, then by row and key"
                )
            merge = self._merges[number]
            if merge is not None:
                of_partition = (
                    changes.filter(pc.equal(placed.numbers, pa.scalar(number, pa.int32())))
                    if len(placed.partitions) > 1
                    else changes
                )
                yield from ((number, found) for found in merge.apply(of_partition))

    def finish(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the remaining rows of the partition in progress."""
        number = next(reversed(self._merges), None)
        merge = None if number is None else self._merges[number]
        if number is not None and merge is not None:
            yield from ((number, found) for found in merge.finish())

    def _rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if HASH in batch.schema.names:
            self._checksum = checksum(self._checksum, hash_sum(batch.column(HASH)))
        own = [name for name in batch.schema.names if name in (ROW, ACTION, HASH)]
        has_writes = pc.any(is_action(Action.WRITE, batch)).as_py()
        return change_rows(batch.drop_columns(own), self._ticket, may_lack=not has_writes)

    def _begun(self, partition: str) -> FileMerge | None:
        """Return the merge of a partition's planned file; None if that is gone."""
        key = self._ticket.changed_by
        columns, order_by = ((), ()) if key is None else (key.record_key, key.order_by)
        is_changed = self._filling.is_changed(partition)
        merge = partial(FileMerge, self._ticket.schema, key=columns, order_by=order_by)
        planned = self._filling.begin([partition])
        for old, batches in self._read(planned) if planned else ():
            self._filling.took(old, is_changed=is_changed)
            if is_changed:
                self.rewrites.append(old)
            return merge(old, batches)
        if is_changed:
            self.gone += [file.path for file in planned]
            return None
        return merge()
