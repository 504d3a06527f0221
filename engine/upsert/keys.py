"""Keys of a batch: each task stores those of its rows as segments, which lookups compare with the table's files.

A segment is an Arrow IPC file below the job's marker folder, with one record batch per partition. It lives as long as
the job, and only segments that a report names are read.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tallymark.backends import Backend
from tallymark.engine.arrow.key_range import Range, range_of
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.partitions.index import PartitionIndex
from tallymark.engine.tasks.caller import check_may_block
from tallymark.engine.tasks.changes import HASH, checksum, hash_sum
from tallymark.engine.tasks.event_loops import TaskLoop
from tallymark.engine.tasks.in_flight import Readers, pack, unpack
from tallymark.engine.tasks.row_buffer import RowBuffer
from tallymark.engine.tasks.shared_backend import shared_backend
from tallymark.engine.tasks.table_rows import change_rows, change_schema
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.log import new_nonce
from tallymark.engine.timeline.table_key import TableKey

PLAIN_BYTES = "_tallymark_bytes"
"""Column that a batch of keys may have beside ``HASH``: the size of each row, as ``plain_bytes`` measures it."""

SEGMENT_BYTES = 40 * 1024 * 1024
"""Arrow bytes of the keys that are compared with a file at once: a million UUIDs, whose hash table takes twice that."""

SAMPLED_ROWS = 256
"""Keys per segment by which inserts are divided among new files: their sizes are then a few percent off."""


@dataclass(frozen=True, slots=True)
class PartitionKeys:
    """Keys of one partition in a segment."""

    partition: str
    rows: int
    plain_bytes: int | None
    lower: bytes
    upper: bytes | None

    @property
    def range(self) -> Range:
        return self.lower, self.upper


@dataclass(frozen=True, slots=True)
class KeySegment:
    path: str
    partitions: tuple[PartitionKeys, ...]
    """In the order of the segment's record batches."""
    sample: bytes
    """Some of the keys, with their partitions, as an Arrow IPC stream."""

    @classmethod
    def of_fields(cls, fields: Sequence[Any]) -> "KeySegment":
        path, partitions, sample = fields[:3]
        return cls(path, tuple(PartitionKeys(*keys[:5]) for keys in partitions), sample)

    def fields(self) -> list[object]:
        partitions = [[each.partition, each.rows, each.plain_bytes, each.lower, each.upper] for each in self.partitions]
        return [self.path, partitions, self.sample]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyReport:
    """Result of a key task; ``encode`` and ``decode`` carry it, and pickles contain the same bytes."""

    instant: str
    task: int
    segments: tuple[KeySegment, ...]
    checksum: int | None
    """Sum of the rows' hashes; None where the batches had none."""

    @property
    def rows(self) -> int:
        return sum(keys.rows for segment in self.segments for keys in segment.partitions)

    def encode(self) -> bytes:
        return pack(self, magic=_MAGIC, format_=FORMAT, default=KeySegment.fields)

    @classmethod
    def decode(cls, data: bytes) -> "KeyReport":
        """Return the report. Raises InvalidRequest for one that was damaged on its way, or is of another format."""
        return unpack(cls, data, magic=_MAGIC, format_=FORMAT, readers=_READERS)

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return KeyReport.decode, (self.encode(),)


FORMAT = 1
_MAGIC = b"TMKR"


_READERS: Readers = {"segments": lambda found: tuple(map(KeySegment.of_fields, found))}


def key_schema(ticket: WriteTicket) -> pa.Schema:
    """Return the key's columns as they are in the table's schema."""
    return pa.schema([ticket.schema.field(name) for name in key_of(ticket).record_key])


def key_of(ticket: WriteTicket) -> TableKey:
    if ticket.changed_by is None:
        raise InvalidRequest(
            f"{ticket.url} has no record key, by which rows could be found, or this write names them by where; create "
            "the table with record_key=..., or leave where out"
        )
    return ticket.changed_by


def key_task(
    ticket: WriteTicket, batches: Iterable[pa.RecordBatch] | pa.Table, *, task: int, backend: Backend | None = None
) -> KeyReport:
    """Store the keys of a task's rows for the job's lookups. Blocking; for any process, as ``write_task``.

    ``batches`` have the key's columns, those that the table is partitioned by, and may have ``HASH`` and
    ``PLAIN_BYTES``; other columns are ignored. Memory holds about two segments.

    Raises:
        InvalidRequest: a key is null or does not fit the table's schema, or a row is in a partition that the job may
            not write.
        Unavailable: storage did not answer. Retry.
    """
    check_may_block("key_task")
    if ticket.is_committed:
        return KeyReport(instant=ticket.instant, task=task, segments=(), checksum=None)
    batches = batches.to_batches() if isinstance(batches, pa.Table) else batches
    backend = backend if backend is not None else shared_backend(ticket, "key_task")
    with closing(TaskLoop(patience_s=ticket.settings.marker_wait_s)) as loop:
        writer = _KeyWriter(ticket, task, lambda path, data: loop.start_soon(partial(backend.put, path), data).result())
        for batch in batches:
            writer.add(batch)
        return writer.finish()


class _KeyWriter:
    def __init__(self, ticket: WriteTicket, task: int, put: Callable[[str, bytes], object]) -> None:
        self._ticket = ticket
        self._task = task
        self._put = put
        self._key = key_schema(ticket)
        self._ranged = ticket.range_field
        kept = [*key_of(ticket).record_key, *ticket.partition_by]
        self._schema = pa.schema([field for field in change_schema(ticket) if field.name in kept])
        self._index = PartitionIndex(ticket.partition_by, ticket.guard)
        self._rows = RowBuffer(row_group_bytes=SEGMENT_BYTES, buffer_bytes=2 * SEGMENT_BYTES)
        self._segments: list[KeySegment] = []
        self._checksum: int | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        known = {*self._schema.names, HASH, PLAIN_BYTES}
        batch = batch.select([place for place, name in enumerate(batch.schema.names) if name in known])
        count = max(1, SEGMENT_BYTES * batch.num_rows // max(1, batch.nbytes))  # so that segments are no larger
        for start in range(0, batch.num_rows, count):
            self._add(batch.slice(start, count))

    def _add(self, batch: pa.RecordBatch) -> None:
        places = [place for place, name in enumerate(batch.schema.names) if name in self._schema.names]
        rows = change_rows(batch.select(places), self._ticket, self._schema)
        if HASH in batch.schema.names:
            self._checksum = checksum(self._checksum or 0, hash_sum(batch.column(HASH)))
        placed = self._index.place(rows)
        kept = rows.select(self._key.names)
        if PLAIN_BYTES in batch.schema.names:
            kept = kept.append_column(PLAIN_BYTES, batch.column(PLAIN_BYTES))
        self._rows.add(type(placed)(kept, placed.numbers, placed.partitions))
        if self._rows.bytes >= SEGMENT_BYTES:
            self._store()

    def finish(self) -> KeyReport:
        self._store()
        return KeyReport(
            instant=self._ticket.instant, task=self._task, segments=tuple(self._segments), checksum=self._checksum
        )

    def _store(self) -> None:
        """Put the waiting keys as one segment."""
        partitions: list[PartitionKeys] = []
        samples: list[pa.Table] = []
        sink = pa.BufferOutputStream()
        numbers = self._rows.remaining()
        if not numbers:
            return
        taken = [(self._index.path(number), self._rows.take(number).combine_chunks()) for number in numbers]
        stride = max(1, sum(rows.num_rows for _, rows in taken) // SAMPLED_ROWS)
        with pa.ipc.new_file(sink, self._key, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            for path, rows in taken:
                plain = pc.sum(rows.column(PLAIN_BYTES)).as_py() if PLAIN_BYTES in rows.schema.names else None
                keys = rows.select(self._key.names)
                lower, upper = self._range(keys)
                partitions.append(PartitionKeys(path, keys.num_rows, plain, lower, upper))
                sampled = keys.take(pa.array(range(stride // 2, keys.num_rows, stride), pa.int64()))
                samples.append(sampled.append_column(PARTITION, pa.repeat(path, sampled.num_rows)))
                writer.write_table(keys, max_chunksize=max(1, keys.num_rows))
        path = f"{marker_folder(self._ticket.instant)}/KEYS/{self._task}-{new_nonce()}"
        self._put(path, sink.getvalue().to_pybytes())
        sample = pa.concat_tables(samples)
        self._segments.append(KeySegment(path, tuple(partitions), _ipc(sample)))

    def _range(self, keys: pa.Table) -> Range:
        found = None if self._ranged is None else range_of(keys.column(self._ranged.name))
        return found or (b"", None)


PARTITION = "_tallymark_partition"
"""Column of samples: the partition path of each key."""


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def read_keys(data: bytes, segment: KeySegment, partitions: frozenset[str] | None) -> pa.Table:
    """Return a segment's keys of these partitions, or of all."""
    reader = pa.ipc.open_file(pa.BufferReader(data))
    wanted = [
        reader.get_batch(number)
        for number, keys in enumerate(segment.partitions)
        if partitions is None or keys.partition in partitions
    ]
    return pa.Table.from_batches(wanted, reader.schema)
