"""The rows of small files that a task writes once more, read from storage ahead of need."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait

import pyarrow as pa
import pyarrow.parquet as pq

from tallymark.backends.errors import NotFound
from tallymark.backends.events import EventLog
from tallymark.engine.errors import CorruptObject
from tallymark.engine.files.conform import conform
from tallymark.engine.timeline.entry import DataFile

READ_AHEAD_BYTES = 32 * 1024 * 1024
"""Of small files that are read at once: dozens where they are tiny and a round trip is what they cost, else one."""

_events = EventLog(__name__)


def read_old_rows(
    files: Iterable[DataFile], read: Callable[[str], Future[bytes]], schema: pa.Schema
) -> Iterator[tuple[DataFile, Iterator[pa.RecordBatch]]]:
    """Each file with its rows, in order and in this schema, a row group at a time; files that are gone are left out.

    A file is gone where another commit has replaced it meanwhile.

    Raises:
        CorruptObject: a file is no Parquet file, or does not hold the rows that its commit told of.
    """
    waiting = deque(files)
    asked: deque[tuple[DataFile, Future[bytes]]] = deque()
    while waiting or asked:
        while waiting and _fits(waiting[0], asked):
            file = waiting.popleft()
            asked.append((file, read(file.path)))
        file, answer = asked.popleft()
        try:
            data = _awaited(answer)
        except NotFound:
            _events.info("fill.gone", path=file.path)
            continue
        yield file, batches_of(data, file, schema)


def batches_of(data: bytes, file: DataFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a data file of these bytes, in this schema. Raises CorruptObject."""
    try:
        parquet = pq.ParquetFile(pa.BufferReader(data))
        if parquet.metadata.num_rows != file.rows:
            raise CorruptObject(
                f"{file.path} holds {parquet.metadata.num_rows} rows, and was committed with {file.rows}; restore it "
                "from a copy, or write with sizing=None, which leaves it alone"
            )
        for group in range(parquet.num_row_groups):
            for batch in parquet.read_row_group(group).to_batches():
                yield conform(batch, schema)
    except (pa.ArrowInvalid, OSError) as error:
        raise CorruptObject(
            f"{file.path} cannot be read ({error}); restore it from a copy, or write with sizing=None, which leaves "
            "it alone"
        ) from error


def _fits(file: DataFile, asked: Iterable[tuple[DataFile, object]]) -> bool:
    under_way = sum(other.bytes for other, _ in asked)
    return not under_way or under_way + file.bytes <= READ_AHEAD_BYTES


def _awaited(answer: Future[bytes]) -> bytes:
    wait([answer])
    return answer.result()
