"""Location of rows: which rows of the table's files have the keys of a batch, or match the predicate of a delete.

Only the columns of the key or predicate are read, and of these only the row groups whose range leaves room for such a
row.
"""

import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tallymark.backends import Backend
from tallymark.backends.concurrently import concurrently
from tallymark.backends.errors import BackendError, NotFound
from tallymark.backends.events import EventLog
from tallymark.engine.arrow.conform import conform
from tallymark.engine.arrow.key_range import Range, meet, range_of
from tallymark.engine.errors import CorruptObject, InvalidRequest, Sealed
from tallymark.engine.partitions.path import partition_values
from tallymark.engine.tasks.caller import check_may_block
from tallymark.engine.tasks.event_loops import TaskLoop
from tallymark.engine.tasks.in_flight import Readers, pack, unpack
from tallymark.engine.tasks.merge import ROW
from tallymark.engine.tasks.row_buffer import value_counts
from tallymark.engine.tasks.shared_backend import shared_backend
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.upsert.keys import SEGMENT_BYTES, KeySegment, key_of, key_schema, read_keys
from tallymark.engine.upsert.where import parse

FILE = "_tallymark_file"
"""Column of a hit beside ``ROW``: the path of the file. After its hits each file has a row without a key, at position
``GONE`` if the file is missing, and otherwise at ``END`` less the number of its hits.
"""

GONE = -1
END = -2

_events = EventLog(__name__)


@dataclass(frozen=True, slots=True)
class Lookup:
    """Work of one ``locate_task``: files, and the segments whose keys may be in them; none for a predicate, which the
    ticket has.
    """

    files: tuple[DataFile, ...]
    segments: tuple[KeySegment, ...] = ()
    by_partition: bool = False
    """Whether keys are compared with files of their own partition alone."""

    def encode(self) -> bytes:
        return pack(self, magic=_MAGIC, format_=FORMAT, default=_fields)

    @classmethod
    def decode(cls, data: bytes) -> "Lookup":
        """Return the lookup. Raises InvalidRequest for one that was damaged on its way, or is of another format."""
        return unpack(cls, data, magic=_MAGIC, format_=FORMAT, readers=_READERS)

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return Lookup.decode, (self.encode(),)


FORMAT = 1
_MAGIC = b"TMLU"


def _fields(value: DataFile | KeySegment) -> list[object]:
    return value.fields()


_READERS: Readers = {
    "files": lambda files: tuple(map(DataFile.of_fields, files)),
    "segments": lambda found: tuple(map(KeySegment.of_fields, found)),
}


def hit_schema(ticket: WriteTicket) -> pa.Schema:
    """Return the columns of hits: ``FILE`` and ``ROW``; of keys, before them the key's and the partition's, and where a
    row may move from one partition to another, those that decide whether it does.
    """
    place = [pa.field(FILE, pa.dictionary(pa.int32(), pa.string())), pa.field(ROW, pa.int64())]
    if ticket.where is not None:
        return pa.schema(place)
    key = key_of(ticket)
    names = dict.fromkeys([*key.record_key, *ticket.partition_by])
    if key.unique_in == "table" and ticket.partition_by:
        names |= dict.fromkeys(key.order_by)
    fields = [ticket.schema.field(name).with_nullable(True) for name in names]
    return pa.schema([*fields, *place])


def locate_task(ticket: WriteTicket, lookup: Lookup, *, backend: Backend | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the hits of a lookup, in the columns of ``hit_schema``. Blocking; for any process, as ``write_task``.

    Memory holds the columns of one row group, or of several up to ``SEGMENT_BYTES``, their hits, and about two segments
    of keys. A file that goes missing during its search has both hits and ``GONE``.

    Raises:
        CorruptObject: a file is not what its commit recorded.
        Sealed: the job was committed or rolled back since.
        Unavailable: storage did not answer. Retry.
    """
    check_may_block("locate_task")
    backend = backend if backend is not None else shared_backend(ticket, "locate_task")
    locator = Locator(ticket, lookup, backend)
    with closing(TaskLoop(patience_s=ticket.settings.marker_wait_s)) as loop:
        for search in () if ticket.is_committed else map(Search, lookup.files):
            while not search.is_over:
                yield from loop.start_soon(locator.hits, search).result()
            yield locator.end(search)


def hit_counts(hits: Iterable[pa.RecordBatch]) -> dict[str, int]:
    """Return the number of hits in each file that was looked up, by its path, for ``WriteJob.profile``; ``GONE`` for a
    missing file.

    Raises InvalidRequest for hits that are incomplete or passed twice: by them a key is new, and all rows of a file go.
    """
    found: Counter[str] = Counter()
    ends: defaultdict[str, list[int]] = defaultdict(list)
    for batch in hits:
        files: Any = batch.column(FILE)
        is_found = is_hit(batch)
        for path, count in value_counts(files.filter(is_found)).items():
            found[path] += count
        is_end = pc.invert(is_found)
        rows: list[Any] = batch.column(ROW).filter(is_end).to_pylist()
        for path, row in zip(files.filter(is_end).to_pylist(), rows, strict=True):
            ends[path].append(row)
    return {path: checked_count(path, found[path], ends[path]) for path in [*ends, *(found.keys() - ends.keys())]}


def is_hit(hits: Any) -> Any:
    """Return whether each row is a hit, rather than the end of a file."""
    return pc.greater_equal(hits.column(ROW), pa.scalar(0))


def checked_count(path: str, hits: int, ends: Sequence[int]) -> int:
    """Return the number of hits in a file, or ``GONE``; ``ends`` are the rows of the file that are not hits.

    Raises InvalidRequest where they are not those of one lookup of the file.
    """
    if list(ends) == [GONE]:
        return GONE
    if list(ends) != [END - hits]:
        raise InvalidRequest(
            f"the hits in {path} are incomplete, or there twice; pass all batches of one attempt of each locate_task"
        )
    return hits


def may_hold(file: DataFile, segment: KeySegment, *, by_partition: bool) -> bool:
    """Return whether a key of the segment may be in the file, by its partition and its range."""
    return bool(_ranges(file, segment, by_partition=by_partition))


def _ranges(file: DataFile, segment: KeySegment, *, by_partition: bool) -> list[Range]:
    """Return the ranges of the segment's keys that may be in the file, of each partition."""
    found = [keys.range for keys in segment.partitions if not by_partition or keys.partition == file.partition]
    return [each for each in found if meet(each, file_range(file))]


def file_range(file: DataFile) -> Range:
    """Return the range of the file's keys; everything where it was not recorded."""
    return (file.bounds[0].lower or b"", file.bounds[0].upper) if file.bounds else (b"", None)


@dataclass(slots=True)
class Search:
    """How far a file is searched."""

    file: DataFile
    parquet: "SomeColumns | None" = None
    segments: tuple[tuple[KeySegment, Range], ...] = ()
    """Those that may have a key of the file, each with a range of its keys."""
    group: int = 0
    """The next row group."""
    row: int = 0
    """Its first row."""
    hits: int = 0
    """Number of those so far."""
    is_over: bool = False
    is_gone: bool = False


class Locator:
    """Finds the rows of one lookup. Owned by one event loop; the segments read last are kept."""

    def __init__(self, ticket: WriteTicket, lookup: Lookup, backend: Backend) -> None:
        self._lookup = lookup
        self._backend = backend
        self._instant = ticket.instant
        self._predicate = None if ticket.where is None else parse(ticket.where, ticket.schema)
        self._key = [] if self._predicate is not None else key_schema(ticket).names
        self._hits = hit_schema(ticket)
        read = self._hits.names if self._predicate is None else self._predicate.columns
        self._stored = pa.schema([ticket.schema.field(name) for name in read if name not in (FILE, ROW)])
        self._ranged = ticket.range_field
        self._schema = ticket.schema
        self._partition_by = ticket.partition_by
        self._kept = [name for name in [*self._stored.names, ROW] if name in self._hits.names]
        self._read_bytes = SEGMENT_BYTES if self._predicate is None else 1
        """Row groups are searched together until they have so many bytes."""
        self._segments: dict[str, bytes] = {}

    async def hits(self, search: Search) -> list[pa.RecordBatch]:
        """Return the rows of some further row groups that have a key of the lookup, or match, in their order.

        Call it until the search is over. It is over, too, and ``is_gone``, where the file is missing.

        Raises as ``locate_task``.
        """
        file = search.file
        try:
            if search.parquet is None:
                search.parquet = await SomeColumns.opened(self._backend, file, self._stored.names)
                search.segments = self._segments_of(file)
            rows = await self._next(search, search.parquet)
            found = rows.select(self._kept).filter(await self._is_hit(search, rows))
        except NotFound:
            _events.info("lookup.gone", path=file.path)
            search.is_over = search.is_gone = True
            return []
        except BackendError:  # Unavailable is an OSError, too, and says nothing of the file
            raise
        except (pa.ArrowInvalid, OSError) as error:
            raise CorruptObject(f"{file.path} cannot be read ({error}); restore it from a copy") from error
        if not found.num_rows:
            return []
        search.hits += found.num_rows
        at = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), found.num_rows), [file.path])
        return found.append_column(FILE, at).select(self._hits.names).cast(self._hits).to_batches()

    def end(self, search: Search) -> pa.RecordBatch:
        """Return the row that follows the hits of a file."""
        row = GONE if search.is_gone else END - search.hits
        return pa.RecordBatch.from_pylist([{FILE: search.file.path, ROW: row}], schema=self._hits)

    async def _next(self, search: Search, parquet: "SomeColumns") -> pa.Table:
        """Return the rows of the next row groups that may have a hit, as the table has them, with their positions."""
        found = [_numbered(self._stored.empty_table(), 0)]
        size = 0
        while search.group < parquet.metadata.num_row_groups and size < self._read_bytes:
            group = parquet.metadata.row_group(search.group)
            if self._may_hit(search, group):
                batches = [conform(batch, self._stored) for batch in (await parquet.read(search.group)).to_batches()]
                found.append(_numbered(pa.Table.from_batches(batches, self._stored), search.row))
                size += found[-1].nbytes
            search.group += 1
            search.row += group.num_rows
        search.is_over = search.group == parquet.metadata.num_row_groups
        return pa.concat_tables(found)

    def _may_hit(self, search: Search, group: Any) -> bool:
        """Return whether the statistics of a row group leave room for a hit."""
        extremes = None if self._ranged is None else _extremes(group, self._ranged)
        if self._predicate is not None:
            values = partition_values(search.file.partition, self._schema, self._partition_by)
            ranges = {} if self._ranged is None or extremes is None else {self._ranged.name: extremes}
            return self._predicate.proof(values, ranges) != "none"
        found = None if self._ranged is None or extremes is None else range_of(pa.array(extremes, self._ranged.type))
        return bool(_meeting(search, found))

    async def _is_hit(self, search: Search, rows: pa.Table) -> Any:
        """Return which of these rows of the file have a key of the lookup, or match."""
        if self._predicate is not None:
            return pa.chunked_array([self._predicate.mask(batch) for batch in rows.to_batches()], pa.bool_())
        found: Any = pa.repeat(False, rows.num_rows)
        partitions = frozenset([search.file.partition]) if self._lookup.by_partition else None
        span = None if self._ranged is None else range_of(rows.column(self._ranged.name))
        waiting: list[pa.Table] = []
        for segment in _meeting(search, span) if rows.num_rows else ():
            keys = read_keys(await self._data(segment.path), segment, partitions)
            if waiting and sum(table.nbytes for table in [*waiting, keys]) > SEGMENT_BYTES:
                found = pc.or_(found, _is_among(rows, pa.concat_tables(waiting), self._key))
                waiting = []
            waiting.append(keys)
        return pc.or_(found, _is_among(rows, pa.concat_tables(waiting), self._key)) if waiting else found

    def _segments_of(self, file: DataFile) -> tuple[tuple[KeySegment, Range], ...]:
        by_partition = self._lookup.by_partition
        return tuple(
            (segment, each)
            for segment in self._lookup.segments
            for each in _ranges(file, segment, by_partition=by_partition)
        )

    async def _data(self, path: str) -> bytes:
        """Return a segment. Raises Sealed where it is missing."""
        if path not in self._segments:
            while self._segments and sum(map(len, self._segments.values())) > SEGMENT_BYTES:
                del self._segments[next(iter(self._segments))]
            try:
                self._segments[path] = await self._backend.get(path)
            except NotFound as error:
                ended = f"instant {self._instant} was committed or rolled back since"
                raise Sealed(f"{ended}; its keys in {path} are deleted") from error
        return self._segments[path]


def _meeting(search: Search, span: Range | None) -> list[KeySegment]:
    """Return the segments that may have a key of the file in this range; None is any."""
    found = {segment.path: segment for segment, each in search.segments if span is None or meet(span, each)}
    return list(found.values())


class SomeColumns:
    """Some columns of one data file: its footer is read once, and of each row group only what they need."""

    def __init__(self, backend: Backend, file: DataFile, columns: Sequence[str], metadata: Any) -> None:
        self._backend = backend
        self._file = file
        self._columns = columns
        self.metadata = metadata

    @classmethod
    async def opened(cls, backend: Backend, file: DataFile, columns: Sequence[str]) -> "SomeColumns":
        """Read the footer.

        Raises:
            NotFound: the file is missing.
            CorruptObject, ArrowInvalid, OSError: it is not what its commit recorded.
        """
        size = min(file.bytes, FOOTER_GUESS_BYTES)
        tail = await backend.get_range(file.path, file.bytes - size, size)
        needed = int.from_bytes(tail[-8:-4], "little") + 8
        if needed > len(tail):
            tail = await backend.get_range(file.path, max(0, file.bytes - needed), needed)
        metadata = pq.read_metadata(pa.BufferReader(tail))
        if metadata.num_rows != file.rows:
            raise CorruptObject(
                f"{file.path} holds {metadata.num_rows} rows, and was committed with {file.rows}; restore it from "
                "a copy"
            )
        return cls(backend, file, columns, metadata)

    async def read(self, number: int) -> pa.Table:
        """Return the columns of a row group."""
        group = self.metadata.row_group(number)
        chunks = [group.column(place) for place in range(group.num_columns)]
        ranges = _coalesced(_range(chunk) for chunk in chunks if _is_of(chunk, self._columns))
        pieces: dict[int, bytes] = {}

        async def get(wanted: tuple[int, int]) -> None:
            start, end = wanted
            pieces[start] = await self._backend.get_range(self._file.path, start, end - start)

        await concurrently(get, ranges, limit=len(ranges))
        source = pa.PythonFile(_Pieces(pieces, self._file.bytes), mode="r")
        parquet = pq.ParquetFile(source, metadata=self.metadata, pre_buffer=False)
        return parquet.read_row_group(number, columns=list(self._columns), use_threads=False)


def _is_of(chunk: Any, columns: Iterable[str]) -> bool:
    """Return whether a chunk is of one of the columns, or may be of a field in it. Names may have dots."""
    return any(f"{chunk.path_in_schema}.".startswith(f"{name}.") for name in columns)


def _range(chunk: Any) -> tuple[int, int]:
    """Return where a column chunk starts and ends."""
    start = chunk.data_page_offset
    if chunk.dictionary_page_offset is not None:
        start = min(start, chunk.dictionary_page_offset)
    return start, start + chunk.total_compressed_size


def _coalesced(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges that cover these; those that are near each other are one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if found and start - found[-1][1] <= GAP_BYTES:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


GAP_BYTES = 256 * 1024
"""Bytes between two columns that are read with them: a request costs as much as a few hundred kilobytes."""

FOOTER_GUESS_BYTES = 64 * 1024
"""Bytes at the end of a file that are read first: the footers of nearly all files are smaller."""


def _extremes(group: Any, ranged: "pa.Field[Any]") -> tuple[Any, Any] | None:
    """Return the least and the greatest value of a key column in a row group; None where they are not known."""
    for place in range(group.num_columns):
        column = group.column(place)
        if column.path_in_schema == ranged.name and column.statistics is not None and column.statistics.has_min_max:
            try:
                return column.statistics.min, column.statistics.max
            except OverflowError:  # a date or time for which Python has no value, such as one after the year 9999
                return None
    return None


def _numbered(rows: pa.Table, first: int) -> pa.Table:
    """Return the rows with their positions in the file, of which this is the first."""
    ones = pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)
    return rows.append_column(ROW, pc.add(pc.cumulative_sum(ones), first - 1))


def _is_among(rows: pa.Table, keys: pa.Table, key: Sequence[str]) -> Any:
    """Return which rows have a key that is among the keys."""
    if len(key) == 1:
        return pc.is_in(rows.column(key[0]), value_set=keys.column(key[0]))
    found = rows.select([*key, ROW]).join(keys, keys=list(key), join_type="left semi")
    return pc.is_in(rows.column(ROW), value_set=found.column(ROW))


class _Pieces(io.RawIOBase):
    """A file of which only some pieces are known."""

    def __init__(self, pieces: Mapping[int, bytes], size: int) -> None:
        self._pieces = pieces
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Return that many bytes, which may span adjacent pieces."""
        found = b""
        while (
            len(found) < size
            and (start := max((at for at in self._pieces if at <= self._at), default=None)) is not None
        ):
            data = self._pieces[start][self._at - start :][: size - len(found)]
            if not data:
                break
            self._at += len(data)
            found += data
        return found
