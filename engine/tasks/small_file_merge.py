"""Merge of small files into the planned files of one task: its progress, and the old rows, read ahead of need.

Owns: which partitions have a planned file, whose old rows are still to be published, in which files they ended up, and
how much of the small files is read at once. Does not own: writing.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from tallymark.backends.errors import NotFound
from tallymark.backends.events import EventLog
from tallymark.engine.arrow.conform import conform
from tallymark.engine.errors import CorruptObject, InvalidRequest
from tallymark.engine.sizing.plan import PlannedFile
from tallymark.engine.tasks.report import Fill
from tallymark.engine.timeline.entry import DataFile


@dataclass(slots=True)
class _Underway:
    old: DataFile
    rows_left: int
    """Old rows that are not published yet; 1 before the first file, where they are changed on the way."""
    is_changed: bool = False
    paths: tuple[str, ...] = ()


class Filling:
    """The planned files of one attempt of a task."""

    def __init__(self, planned: Sequence[PlannedFile]) -> None:
        """Raises InvalidRequest for two files of one partition: no rule would assign a row to one of them."""
        self._planned: dict[str, PlannedFile] = {}
        for file in planned:
            if self._planned.setdefault(file.partition, file) is not file:
                raise InvalidRequest(
                    f"partition {file.partition!r} has two planned files in one task; give each to a task of its own, "
                    "as tasks_of does"
                )
        self._expected = {file.partition: file.bytes for file in planned}
        """Expected bytes of the planned files that are not published yet; without the rows of missing small files."""
        self._sizes: list[tuple[str, int]] = []
        self._underway: dict[str, _Underway] = {}
        self._done: list[Fill] = []

    def is_planned(self, partition: str) -> bool:
        return partition in self._planned

    def is_changed(self, partition: str) -> bool:
        """Return whether rows of the partition's planned file are to be changed."""
        planned = self._planned.get(partition)
        return planned is not None and planned.updates > 0

    def begin(self, partitions: Iterable[str]) -> list[DataFile]:
        """Return the small files to be filled in the partition that no earlier call has returned."""
        found = []
        for partition in partitions:
            planned = self._planned.get(partition)
            if planned is not None and planned.fill is not None:
                self._planned[partition] = replace(planned, fill=None)
                self._expected[partition] -= planned.fill.bytes
                found.append(planned.fill)
        return found

    def took(self, old: DataFile, *, is_changed: bool = False) -> None:
        """Record that all rows of this small file were passed on, before any other row of its partition; or those that
        are left of them, where they are changed.
        """
        self._underway[old.partition] = _Underway(old, 1 if is_changed else old.rows, is_changed)
        self._expected[old.partition] += old.bytes

    def published(self, file: DataFile) -> DataFile:
        """Return the published file with the cost of its rewrites. Files of a partition are published in the order of
        their rows.
        """
        expected = self._expected.pop(file.partition, None)
        if expected is not None:
            self._sizes.append((file.path, expected))
        underway = self._underway.get(file.partition)
        if underway is None:
            return file
        cost = 0 if underway.paths else underway.old.rewritten_bytes + underway.old.bytes
        underway.paths += (file.path,)
        underway.rows_left -= file.rows
        if underway.rows_left <= 0:
            if not underway.is_changed:
                self._done.append(Fill(underway.old, underway.paths))
            del self._underway[file.partition]
        return replace(file, rewritten_bytes=cost)

    @property
    def sizes(self) -> tuple[tuple[str, int], ...]:
        """Return the expected bytes of the planned files, by the path of each one's first published file."""
        return tuple(self._sizes)

    @property
    def done(self) -> tuple[Fill, ...]:
        assert all(each.is_changed for each in self._underway.values()), "a task that is over has published all rows"
        return tuple(self._done)


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
