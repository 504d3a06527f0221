"""Changes of single rows by one job: where the table has these rows, and what its tasks made of that.

Owns: which lookups there are, and that the tasks have changed each row that was found once. Does not own: which files
are looked up (``keyed`` and ``selected``), the lookup itself (``upsert.locate``), and the plan of files.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tallymark.engine.errors import ConflictError, InvalidRequest
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.sizing.plan import PlannedFile
from tallymark.engine.sizing.profile import FileUpdates, WorkloadProfile
from tallymark.engine.tasks.report import ChangeCounts, TaskReport
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.summary import ChangeSummary
from tallymark.engine.upsert.keys import KeyReport
from tallymark.engine.upsert.locate import GONE, Lookup
from tallymark.engine.views.view import ViewAt

LOOKUP_BYTES = 128 * 1024 * 1024
"""Bytes of the files of one lookup, so that a task is worth its start: of a file this large the keys take seconds."""

LOOKUP_FILES = 128
"""Maximum number of files of one lookup: small ones take the time of their requests, one after the other."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What the tasks of a job report."""

    counts: ChangeCounts
    paths: Sequence[str]
    """Files that they have rewritten."""
    planned: Collection[str]
    """Files that they were to rewrite."""


class JobChanges(ABC):
    def __init__(self, handle: TableHandle, properties: TableProperties, ticket: WriteTicket) -> None:
        self._handle = handle
        self._properties = properties
        self._ticket = ticket
        self._files: dict[str, DataFile] = {}
        """Files that were looked up."""
        self._is_looked_up = False
        self._hits: Mapping[str, int] | None = None
        """Number of hits by path; None until ``profile`` gets them."""
        self._position = 0
        self._summary: ChangeSummary | None = None

    @property
    def position(self) -> int:
        """The position of the log at which rows were looked up."""
        return self._position

    @property
    def summary(self) -> ChangeSummary | None:
        return self._summary

    @property
    def read(self) -> list[DataFile]:
        """Files that have a row of the write: where one was replaced since, what was found is out of date."""
        return [self._files[path] for path in self._hits or ()]

    @property
    def removed(self) -> tuple[DataFile, ...]:
        """Files all of whose rows are deleted, without a task."""
        return ()

    @abstractmethod
    async def look_up(self, reports: Iterable[KeyReport] = ()) -> tuple[Lookup, ...]:
        """Return the lookups that show where the table has the rows; none where no file may have one."""

    async def _latest(self) -> ViewAt:
        """Return the table as it is now, of which the lookups are."""
        history = await self._handle.log.refresh()
        self._position = history.head
        self._is_looked_up, self._hits = True, None
        return self._handle.view(self._properties).at(history.head)

    def _dealt(self, files: Iterable[DataFile]) -> Iterator[Sequence[DataFile]]:
        """Yield these files, which are to be looked up, those of one lookup after the other."""
        self._files = {file.path: file for file in files}
        waiting: list[DataFile] = []
        size = 0
        for file in self._files.values():
            waiting.append(file)
            size += file.bytes
            if size >= LOOKUP_BYTES or len(waiting) == LOOKUP_FILES:
                yield waiting
                waiting, size = [], 0
        if waiting:
            yield waiting

    def profile(self, hits: Mapping[str, int]) -> WorkloadProfile:
        """Return the input of the plan; ``hits`` are the number of rows found in each file, by its path.

        Raises:
            InvalidRequest: a file was not looked up, or has no result, or the write may not change it.
            ConflictError: a file was missing (``GONE``), since another writer has replaced it.
        """
        if not self._is_looked_up:
            raise self._incomplete()
        for path, rows in hits.items():
            if path not in self._files:
                raise InvalidRequest(f"hits in {path}, which this job has not looked up; pass those of its own lookups")
            if rows == GONE:
                raise self._replaced(path)
        if missing := sorted(self._files.keys() - hits.keys()):
            raise InvalidRequest(
                f"lookups of {len(missing):,} files have no result, such as of {missing[0]}; run locate_task for each "
                "lookup, and pass what hit_counts returns for all of them"
            )
        self._hits = {path: rows for path, rows in hits.items() if rows}
        self._check_hits(self._hits)
        return self._profile(self._hits)

    @abstractmethod
    def _check_hits(self, hits: Mapping[str, int]) -> None:
        """Check that the write may change these rows. Raises InvalidRequest."""

    @abstractmethod
    def _profile(self, hits: Mapping[str, int]) -> WorkloadProfile: ...

    def _updates(self, hits: Mapping[str, int]) -> tuple[FileUpdates, ...]:
        return tuple(FileUpdates(self._files[path], rows) for path, rows in hits.items())

    def check(self, reports: Iterable[TaskReport], planned: Iterable[PlannedFile]) -> None:
        """Check that the tasks have changed each row that was looked up once, in the files that are planned.

        Raises:
            InvalidRequest: they got other rows, or other plans.
            ConflictError: another writer has replaced a file before a task could read it.
        """
        if not self._is_looked_up or (self._files and self._hits is None):
            raise self._incomplete()
        reports = list(reports)
        if gone := next((path for report in reports for path in report.gone), None):
            raise self._replaced(gone)
        files = [file for report in reports for file in report.rewrites]
        found = Rewritten(
            counts=sum((report.changes for report in reports), ChangeCounts()),
            paths=[file.path for file in files],
            planned={file.fill.path for file in planned if file.fill is not None and file.updates},
        )
        superseded = self._check_rewritten(found)
        for report in reports:
            if report.rows != report.changes.inserted - report.changes.deleted:
                raise InvalidRequest(
                    f"the files of task {report.task} have {report.rows - report.changes.inserted:+,} rows beside "
                    f"those that it inserted, and it deleted {report.changes.deleted:,}; run the job again"
                )
        self._summary = ChangeSummary(
            inserted=found.counts.inserted,
            updated=found.counts.updated,
            deleted=found.counts.deleted + sum(file.rows for file in self.removed),
            ignored=found.counts.ignored,
            superseded=superseded,
            looked_up_files=len(self._files),
            looked_up_bytes=sum(file.bytes for file in self._files.values()),
            rewritten_files=len(files),
            rewritten_bytes=sum(file.bytes for file in files),
            removed_files=len(self.removed),
            removed_bytes=sum(file.bytes for file in self.removed),
        )

    @abstractmethod
    def _check_rewritten(self, found: Rewritten) -> int:
        """Check that these are the rows that were looked up. Return how many of the deleted ones are superseded.

        Raises as ``check``.
        """

    def check_late(self, history: History) -> None:  # noqa: B027 # a delete by predicate leaves later rows alone
        """Check files that others have added since the lookup."""

    @abstractmethod
    def _incomplete(self) -> InvalidRequest:
        """Return the error of a job whose rows were not looked up."""

    def _replacing(self, path: str) -> str | None:
        """Return the instant that has removed the file since it was looked up, as far as the log has been read."""
        later = self._handle.log.history.after(self._position)
        return next((entry.instant for _, entry in later if any(file.path == path for file in entry.removed)), None)

    def _replaced(self, path: str) -> ConflictError:
        return ConflictError(
            f"{path}, which has rows that instant {self._ticket.instant} changes, was replaced by another "
            f"writer since position {self._position}; nothing of this write is left: write again",
            partition=path.rpartition("/")[0] or None,
            winner=self._replacing(path) or "",
        )
