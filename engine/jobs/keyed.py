"""Changes by key of one job: the keys of its batch, where the table has them, and what its tasks made of that.

Owns: which files are looked up, that the tasks got the rows whose keys were looked up, each once, and that no other
writer has added one of the keys since. Does not own: the lookup itself (``upsert.locate``), and the plan of files.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import anyio

from tallymark.backends.events import EventLog
from tallymark.engine.arrow.key_range import Range, meet, union
from tallymark.engine.errors import ConflictError, CorruptObject, InvalidRequest, TallymarkError
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.request import WriteRequest
from tallymark.engine.sizing.plan import PlannedFile
from tallymark.engine.sizing.profile import FileUpdates, IncomingRows, WorkloadProfile, added_up
from tallymark.engine.tasks.changes import checksum
from tallymark.engine.tasks.merge import ROW
from tallymark.engine.tasks.report import ChangeCounts, TaskReport
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.summary import ChangeSummary
from tallymark.engine.upsert.keys import KeyReport, KeySegment, key_of
from tallymark.engine.upsert.locate import GONE, Locator, Lookup, file_range

LOOKUP_BYTES = 128 * 1024 * 1024
"""Bytes of the files of one lookup, so that a task is worth its start: of a file this large the keys take seconds."""

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


class JobChanges:
    def __init__(
        self, handle: TableHandle, properties: TableProperties, ticket: WriteTicket, request: WriteRequest
    ) -> None:
        self._handle = handle
        self._request = request
        self._properties = properties
        self._ticket = ticket
        self._by_partition = key_of(ticket).unique_in == "partition"
        self._segments: tuple[KeySegment, ...] | None = None
        self._checksum: int | None = None
        self._files: dict[str, DataFile] = {}
        """Files that were looked up."""
        self._places: dict[str | None, list[tuple[KeySegment, Range]]] = {}
        self._hits: Mapping[str, int] | None = None
        """Number of hits by path; None until ``profile`` gets them."""
        self._position = 0
        self._checked_to = 0
        self._late_since: float | None = None
        self._summary: ChangeSummary | None = None

    @property
    def position(self) -> int:
        """The position of the log at which keys were looked up."""
        return self._position

    @property
    def summary(self) -> ChangeSummary | None:
        return self._summary

    @property
    def read(self) -> list[DataFile]:
        """Files that have a key of the batch: where one was replaced since, what was found is out of date."""
        return [self._files[path] for path in self._hits or ()]

    async def look_up(self, reports: Iterable[KeyReport]) -> tuple[Lookup, ...]:
        """Return the lookups that show where the table has the keys; none where no file may have one.

        Raises:
            InvalidRequest: reports of another job, or two of one task.
        """
        self._segments, self._checksum = _checked(reports, self._ticket.instant)
        self._places = _by_place(self._segments, by_partition=self._by_partition)
        self._hits = None
        history = await self._handle.log.refresh()
        self._position = self._checked_to = history.head
        at = self._handle.view(self._properties).at(history.head)
        partitions = {keys.partition for segment in self._segments for keys in segment.partitions}
        files = await at.files_of(partitions if self._by_partition else await at.partitions())
        lookups: list[Lookup] = []
        waiting: list[DataFile] = []
        size = 0
        for file in files:
            if self._may_have(file):
                waiting.append(file)
                size += file.bytes
                if size >= LOOKUP_BYTES:
                    lookups.append(self._lookup(waiting))
                    waiting, size = [], 0
        if waiting:
            lookups.append(self._lookup(waiting))
        self._files = {file.path: file for lookup in lookups for file in lookup.files}
        return tuple(lookups)

    def _may_have(self, file: DataFile) -> list[KeySegment]:
        """Return the segments that may have a key of the file."""
        places = self._places.get(file.partition if self._by_partition else None, ())
        found = file_range(file)
        return [segment for segment, keys in places if meet(keys, found)]

    def _lookup(self, files: Sequence[DataFile]) -> Lookup:
        segments = {segment.path: segment for file in files for segment in self._may_have(file)}
        without_samples = (replace(segment, sample=b"") for segment in segments.values())
        return Lookup(tuple(files), tuple(without_samples), self._by_partition)

    def profile(self, hits: Mapping[str, int]) -> WorkloadProfile:
        """Return the input of the plan; ``hits`` are the number of rows found in each file, by its path.

        Raises:
            InvalidRequest: a file that was not looked up, or keys are there and ``when_matched="fail"``.
            ConflictError: a file was missing (``GONE``), since another writer has replaced it.
        """
        if self._segments is None:
            raise _not_looked_up()
        for path, rows in hits.items():
            if path not in self._files:
                raise InvalidRequest(f"hits in {path}, which this job has not looked up; pass those of its own lookups")
            if rows == GONE:
                raise self._replaced(path)
        if hits and self._request.when_matched == "fail":
            raise InvalidRequest(
                f"{sum(hits.values()):,} rows have a key that the table has, such as in {min(hits)}, and "
                "when_matched='fail': leave them out, or say 'update' or 'keep'"
            )
        self._hits = dict(hits)
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

    def _updates(self, hits: Mapping[str, int]) -> tuple[FileUpdates, ...]:
        return tuple(FileUpdates(self._files[path], rows) for path, rows in hits.items())

    def check(self, reports: Iterable[TaskReport], planned: Iterable[PlannedFile]) -> None:
        """Check that the tasks have merged each row that was looked up once, into the files that are planned.

        Raises:
            InvalidRequest: they got other rows, or other plans.
            ConflictError: another writer has replaced a file before a task could read it.
        """
        if self._segments is None or (self._files and self._hits is None):
            raise _not_looked_up()
        reports = list(reports)
        if gone := next((path for report in reports for path in report.gone), None):
            raise self._replaced(gone)
        rewritten = [file.path for report in reports for file in report.rewrites]
        wanted = {file.fill.path for file in planned if file.fill is not None and file.updates}
        counts = sum((report.changes for report in reports), ChangeCounts())
        rows = sum(keys.rows for segment in self._segments for keys in segment.partitions)
        is_same = self._checksum is None or self._checksum == checksum(counts.checksum)
        superseded = counts.rows - rows  # each of these has deleted a row beside those of the input
        is_counted = 0 <= superseded <= counts.deleted
        if not wanted.issuperset(rewritten) or len({*rewritten}) < len(rewritten) or not is_counted or not is_same:
            raise InvalidRequest(
                f"the tasks got {counts.rows:,} rows and rewrote {len(rewritten):,} files, and the keys of {rows:,} "
                f"rows were looked up, for {len(wanted):,} files: the input was not the same when it was computed "
                "again (a random or changing source), or plans were mixed up; store the input first, and write that"
            )
        for report in reports:
            if report.rows != report.changes.inserted - report.changes.deleted:
                raise InvalidRequest(
                    f"the files of task {report.task} have {report.rows - report.changes.inserted:+,} rows beside "
                    f"those that it inserted, and it deleted {report.changes.deleted:,}; run the job again"
                )
        self._summary = ChangeSummary(
            inserted=counts.inserted,
            updated=counts.updated,
            deleted=counts.deleted,
            ignored=counts.ignored,
            superseded=superseded,
            looked_up_files=len(self._files),
            looked_up_bytes=sum(file.bytes for file in self._files.values()),
            rewritten_files=len(rewritten),
            rewritten_bytes=sum(file.bytes for report in reports for file in report.rewrites),
        )

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
            for batch in await locator.hits(file):
                if batch.column(ROW)[0].as_py() == GONE:
                    await self._check_replaced(file, late.position)
                    return
                found = {name: batch.column(name)[0].as_py() for name in key_of(self._ticket).record_key}
                raise ConflictError(
                    f"instant {self._ticket.instant} has a row of key {found}, which another writer has put into "
                    f"{file.path} since the keys were looked up at position {self._position}; nothing of this write is "
                    "left: write again",
                    partition=file.partition,
                    winner=_writer(file),
                )
        self._checked_to = late.position
        _events.info("keys.late", instant=self._ticket.instant, files=len(late.files), position=late.position)

    async def _check_replaced(self, file: DataFile, position: int) -> None:
        """Check that another writer has replaced the file after the position. Raises CorruptObject."""
        history = await self._handle.log.refresh()
        if not any(file.path == removed.path for _, entry in history.after(position) for removed in entry.removed):
            raise CorruptObject(f"{file.path} is missing, and no write has replaced it; restore it from a copy")

    def _replaced(self, path: str) -> ConflictError:
        later = self._handle.log.history.after(self._position)
        replacing = (entry.instant for _, entry in later if any(file.path == path for file in entry.removed))
        return ConflictError(
            f"{path}, which has rows of keys that instant {self._ticket.instant} changes, was replaced by another "
            f"writer since position {self._position}; nothing of this write is left: write again",
            partition=path.rpartition("/")[0] or None,
            winner=next(replacing, ""),
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


def _not_looked_up() -> InvalidRequest:
    return InvalidRequest(
        "a write by key needs the keys of its rows first: run key_task, pass its reports to WriteJob.look_up, and what "
        "its lookups have found to WriteJob.profile"
    )
