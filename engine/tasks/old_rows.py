"""Rows of small files that a task rewrites, read from storage ahead of need."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait

import pyarrow as pa
import pyarrow.parquet as pq

from tallymark.backends.errors import NotFound
from tallymark.backends.events import EventLog
from tallymark.engine.arrow.conform import conform
from tallymark.engine.errors import CorruptObject
from tallymark.engine.timeline.entry import DataFile

READ_AHEAD_BYTES = 32 * 1024 * 1024
"""Size of the small files that are read at once: dozens where they are tiny and round trips dominate, otherwise one."""

BATCH_BYTES = 16 * 1024 * 1024
"""Size of the old rows that are decoded at once. Arrow's default is 65,536 rows, which are 160 MB for 200 columns."""

BATCH_ROWS_MAX = 65_536
"""Maximum number of rows, for narrow ones: larger batches are decoded no faster."""

_events = EventLog(__name__)


def read_old_rows(
    files: Iterable[DataFile], read: Callable[[str], Future[bytes]], schema: pa.Schema
) -> Iterator[tuple[DataFile, Iterator[pa.RecordBatch]]]:
    """Yield each file with its rows, in order and in this schema, in batches; missing files are left out.

    A file is missing where another commit has replaced it since. Memory contains the bytes of one file, and of those
    that are read ahead. Storage itself bounds the time of a read (``RetrySettings.timeout_s``).

    Raises:
        CorruptObject: a file is not a Parquet file, or does not contain the rows that its commit recorded.
    """
    waiting = deque(files)
    asked: deque[tuple[DataFile, Future[bytes]]] = deque()
    while waiting or asked:
        while waiting and _fits(waiting[0], asked):
            file = waiting.popleft()
            asked.append((file, read(file.path)))
        yield from _rows_of(*asked.popleft(), schema)


def batches_of(data: bytes, file: DataFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a data file of these bytes, in this schema. Raises CorruptObject."""
    try:
        parquet = pq.ParquetFile(pa.BufferReader(data))
        if parquet.metadata.num_rows != file.rows:
            raise CorruptObject(
                f"{file.path} holds {parquet.metadata.num_rows} rows, and was committed with {file.rows}; restore it "
                "from a copy, or write with sizing=None, which leaves it alone"
            )
        for batch in parquet.iter_batches(_batch_rows(parquet.metadata, file)):
            yield conform(batch, schema)
    except (pa.ArrowInvalid, OSError) as error:
        raise CorruptObject(
            f"{file.path} cannot be read ({error}); restore it from a copy, or write with sizing=None, which leaves "
            "it alone"
        ) from error


def _batch_rows(metadata: pq.FileMetaData, file: DataFile) -> int:
    """Return the number of this file's rows that take about ``BATCH_BYTES`` in Arrow, by their recorded size."""
    stored = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    row_bytes = max(file.plain_bytes, stored) / max(1, file.rows)
    return min(BATCH_ROWS_MAX, max(1, round(BATCH_BYTES / max(1.0, row_bytes))))


def _fits(file: DataFile, asked: Iterable[tuple[DataFile, object]]) -> bool:
    in_flight = sum(other.bytes for other, _ in asked)
    return not in_flight or in_flight + file.bytes <= READ_AHEAD_BYTES


def _rows_of(
    file: DataFile, answer: Future[bytes], schema: pa.Schema
) -> Iterator[tuple[DataFile, Iterator[pa.RecordBatch]]]:
    """Yield the file with its rows, or nothing if it is missing."""
    wait([answer])
    try:
        found = batches_of(answer.result(), file, schema)
    except NotFound:
        _events.info("fill.gone", path=file.path)
    else:
        yield file, found
