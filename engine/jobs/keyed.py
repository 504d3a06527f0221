"""Changes by key of one job: the keys of its batch, and where the table has them.

Owns: which files are looked up, that the tasks got the rows whose keys were looked up, and that no other writer has
added one of the keys since. Does not own: the lookup itself (``upsert.locate``), and the plan of files.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import anyio
import pyarrow as pa

from tallymark.backends.events import EventLog
from tallymark.engine.arrow.key_range import Range, meet, union
from tallymark.engine.errors import ConflictError, CorruptObject, InvalidRequest, TallymarkError
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.changes import JobChanges, Rewritten
from tallymark.engine.jobs.request import WriteRequest
from tallymark.engine.sizing.profile import IncomingRows, WorkloadProfile, added_up
from tallymark.engine.tasks.changes import checksum
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.upsert.keys import KeyReport, KeySegment, key_of
from tallymark.engine.upsert.locate import Locator, Lookup, Search, file_range

LATE_S_MAX = 600.0
"""Maximum seconds of lookups in files that others add at the same time. The first takes as long as these files are
many; each further one, as long as the one before has taken.
"""

_events = EventLog(__name__)


class LateFilesError(TallymarkError):
    """Other writers have committed files since the lookup that may have a key of the batch."""

    def __init__(self, files: Sequence[DataFile], position: int) -> None:
        super().__init__(f"{len(files)} files up to position {position}")
        self.files = files
        self.position = position


class KeyedChanges(JobChanges):
    def __init__(
        self, handle: TableHandle, properties: TableProperties, ticket: WriteTicket, request: WriteRequest
    ) -> None:
        super().__init__(handle, properties, ticket)
        self._request = request
        self._by_partition = key_of(ticket).unique_in == "partition"
        self._segments: tuple[KeySegment, ...] = ()
        self._checksum: int | None = None
        self._places: dict[str | None, list[tuple[KeySegment, Range]]] = {}
        self._checked_to = 0
        self._late_since: float | None = None

    async def look_up(self, reports: Iterable[KeyReport] = ()) -> tuple[Lookup, ...]:
        """Return the lookups. Raises InvalidRequest for reports of another job, or two of one task."""
        self._segments, self._checksum = _checked(reports, self._ticket.instant)
        self._places = _by_place(self._segments, by_partition=self._by_partition)
        at = await self._latest()
        self._checked_to = self._position
        partitions = {keys.partition for segment in self._segments for keys in segment.partitions}
        files = await at.files_of(partitions if self._by_partition else await at.partitions())
        return tuple(map(self._lookup, self._dealt(file for file in files if self._may_have(file))))

    def _may_have(self, file: DataFile) -> list[KeySegment]:
        """Return the segments that may have a key of the file."""
        places = self._places.get(file.partition if self._by_partition else None, ())
        found = file_range(file)
        return [segment for segment, keys in places if meet(keys, found)]

    def _lookup(self, files: Sequence[DataFile]) -> Lookup:
        segments = {segment.path: segment for file in files for segment in self._may_have(file)}
        without_samples = (replace(segment, sample=b"") for segment in segments.values())
        return Lookup(tuple(files), tuple(without_samples), self._by_partition)

    def _check_hits(self, hits: Mapping[str, int]) -> None:
        if hits and self._request.when_matched == "fail":
            raise InvalidRequest(
                f"{sum(hits.values()):,} rows have a key that the table has, such as in {min(hits)}, and "
                "when_matched='fail': leave them out, or say 'update' or 'keep'"
            )

    def _profile(self, hits: Mapping[str, int]) -> WorkloadProfile:
        if self._request.mode == "delete":
            return WorkloadProfile(incoming=(), updates=self._updates(hits))
        incoming = added_up(
            IncomingRows(keys.partition, keys.rows, keys.plain_bytes)
            for segment in self._segments
            for keys in segment.partitions
        )
        found: defaultdict[str, int] = defaultdict(int)
        for path, rows in hits.items():
            found[self._files[path].partition] += rows
        return WorkloadProfile(
            incoming=tuple(_without(rows, found[rows.partition]) for rows in incoming),
            updates=() if self._request.when_matched == "keep" else self._updates(hits),
        )

    def _check_rewritten(self, found: Rewritten) -> int:
        rows = sum(keys.rows for segment in self._segments for keys in segment.partitions)
        is_same = self._checksum is None or self._checksum == checksum(found.counts.checksum)
        superseded = found.counts.rows - rows  # each of these has deleted a row beside those of the input
        is_counted = 0 <= superseded <= found.counts.deleted
        is_planned = set(found.planned).issuperset(found.paths) and len({*found.paths}) == len(found.paths)
        if not is_planned or not is_counted or not is_same:
            raise InvalidRequest(
                f"the tasks got {found.counts.rows:,} rows and rewrote {len(found.paths):,} files, and the keys of "
                f"{rows:,} rows were looked up, for {len(found.planned):,} files: the input was not the same when it "
                "was computed again (a random or changing source), or plans were mixed up; store the input first, and "
                "write that"
            )
        return superseded

    def check_late(self, history: History) -> None:
        """Check that no file that others have added since may have one of the keys. Raises LateFilesError with those
        that may.
        """
        added: dict[str, DataFile] = {}
        for _, entry in history.after(self._checked_to):
            if entry.kind == "commit":
                added.update((file.path, file) for file in entry.added)
                for file in entry.removed:
                    added.pop(file.path, None)
        if late := [file for file in added.values() if self._may_have(file)]:
            raise LateFilesError(late, history.head)
        self._checked_to = history.head

    async def look_up_late(self, late: LateFilesError) -> None:
        """Look the keys up in late files. If one of them was replaced since, its successor is as late, and the next
        check finds it.

        Raises:
            ConflictError: one of them has a key, or there have been late files for ``LATE_S_MAX`` seconds.
            CorruptObject: one of them is missing, and was not replaced.
            Sealed: the keys are deleted, since the job is over.
        """
        now = anyio.current_time()
        self._late_since = now if self._late_since is None else self._late_since
        if now - self._late_since > LATE_S_MAX:
            raise ConflictError(
                f"other writers have added files for {LATE_S_MAX:g} s, faster than instant {self._ticket.instant} "
                "could look its keys up in them; nothing of this write is left: write again when there are fewer "
                "writers, or split their writes by ranges of keys",
                partition=late.files[0].partition,
                winner=_writer(late.files[0]),
            )
        lookup = self._lookup(late.files)
        locator = Locator(self._ticket, lookup, self._handle.backend)
        for file in lookup.files:
            search = Search(file)
            while not search.is_over:
                for batch in await locator.hits(search):
                    raise self._added(file, batch)
            if search.is_gone:
                await self._check_replaced(file, late.position)
                return
        self._checked_to = late.position
        _events.info("keys.late", instant=self._ticket.instant, files=len(late.files), position=late.position)

    def _added(self, file: DataFile, hits: pa.RecordBatch) -> ConflictError:
        found = {name: hits.column(name)[0].as_py() for name in key_of(self._ticket).record_key}
        return ConflictError(
            f"instant {self._ticket.instant} has a row of key {found}, which another writer has put into {file.path} "
            f"since the keys were looked up at position {self._position}; nothing of this write is left: write again",
            partition=file.partition,
            winner=_writer(file),
        )

    async def _check_replaced(self, file: DataFile, position: int) -> None:
        """Check that another writer has replaced the file after the position. Raises CorruptObject."""
        history = await self._handle.log.refresh()
        if not any(file.path == removed.path for _, entry in history.after(position) for removed in entry.removed):
            raise CorruptObject(f"{file.path} is missing, and no write has replaced it; restore it from a copy")

    def _incomplete(self) -> InvalidRequest:
        return InvalidRequest(
            "a write by key needs the keys of its rows first: run key_task, pass its reports to WriteJob.look_up, and "
            "what its lookups have found to WriteJob.profile"
        )


def _by_place(
    segments: Iterable[KeySegment], *, by_partition: bool
) -> dict[str | None, list[tuple[KeySegment, Range]]]:
    """Return the segments that have keys of each partition, with their ranges there; or all, by None."""
    places: defaultdict[str | None, list[tuple[KeySegment, Range]]] = defaultdict(list)
    for segment in segments:
        for keys in segment.partitions if by_partition else ():
            places[keys.partition].append((segment, keys.range))
        if not by_partition and (whole := reduce(union, (keys.range for keys in segment.partitions), None)):
            places[None].append((segment, whole))
    return dict(places)


def _writer(file: DataFile) -> str:
    """Return the instant of the file's write."""
    return file.name.rpartition("_")[2].removesuffix(".parquet")


def _without(rows: IncomingRows, found: int) -> IncomingRows:
    """Return the rows less those that are found in the table."""
    left = max(0, rows.rows - found)
    size = None if rows.plain_bytes is None or not rows.rows else rows.plain_bytes * left // rows.rows
    return IncomingRows(rows.partition, left, size)


def _checked(reports: Iterable[KeyReport], instant: str) -> tuple[tuple[KeySegment, ...], int | None]:
    tasks: dict[int, KeyReport] = {}
    for report in reports:
        if report.instant != instant:
            raise InvalidRequest(
                f"keys of task {report.task} belong to instant {report.instant}, this job is {instant}; pass those of "
                "this job's ticket"
            )
        if report.task in tasks:
            raise InvalidRequest(f"two reports of the keys of task {report.task}; pass the winner's")
        tasks[report.task] = report
    checksums = [report.checksum for report in tasks.values() if report.segments]
    known = [checksum for checksum in checksums if checksum is not None]
    segments = tuple(segment for number in sorted(tasks) for segment in tasks[number].segments)
    return segments, checksum(*known) if len(known) == len(checksums) else None
