"""Rerun of a write that was committed before: nothing is started, and the caller gets the result of that write."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tallymark.backends.errors import BackendError
from tallymark.backends.events import EventLog
from tallymark.engine.instants.finish import delete_replaced, staging_folder
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.reports import check_reports
from tallymark.engine.jobs.request import WriteRequest
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.jobs.target import WriteTarget
from tallymark.engine.jobs.txn import committed_write, declared
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.maintenance.recovery import end_abandoned
from tallymark.engine.settings import NO_SIZING, TaskSettings
from tallymark.engine.sizing.plan import SizingPlan
from tallymark.engine.sizing.profile import WorkloadProfile
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.reservation import OPEN_FOLDER
from tallymark.engine.upsert.keys import KeyReport
from tallymark.engine.upsert.locate import Lookup

_events = EventLog(__name__)


class _CommittedJob(WriteJob):
    """A job whose txn was committed before it started: it has no instant and nothing to end.

    Its ticket is valid for tasks of a caller that does not check ``committed``: they read and write nothing.
    """

    def __init__(self, handle: TableHandle, result: WriteResult, ticket: WriteTicket) -> None:
        self._handle = handle
        self._result = result
        self._ticket = ticket

    @property
    def instant(self) -> str:
        """The instant of that commit."""
        return self._result.instant

    @property
    def committed(self) -> WriteResult:
        return self._result

    @property
    def marker_count(self) -> int:
        return 0

    async def look_up(self, keys: Iterable[KeyReport] = ()) -> tuple[Lookup, ...]:
        """Return none: nothing will be written."""
        return ()

    def profile(self, hits: Mapping[str, int]) -> WorkloadProfile:
        """Return that of no rows: nothing will be written."""
        return WorkloadProfile(incoming=())

    async def size(self, profile: WorkloadProfile) -> SizingPlan:
        """Return an empty plan: nothing will be written."""
        return SizingPlan(files=())

    async def commit(
        self, reports: Iterable[TaskReport], *, producers: Mapping[str, tuple[int, int]] | None = None
    ) -> WriteResult:
        """Return the result of the committed write. Raises InvalidRequest for reports of another job."""
        check_reports(reports, self.instant)
        return self._result

    async def end(self) -> None:
        pass


async def find_committed(handle: TableHandle, properties: TableProperties, request: WriteRequest) -> WriteResult | None:
    """Return the result of the write that was committed under the request's txn; None if there is none so far.

    Steps that its writer may have left are done first, so that every reader sees it. Where none are left, this reads
    the log and the open instants, and changes nothing.

    Raises:
        InvalidRequest: that write was declared differently.
    """
    if request.txn is None:
        return None
    found = await committed_write(handle.log, request.txn, declared(WriteTarget.of(request, properties)))
    if found is None:
        return None
    position, entry = found
    _events.info("txn.committed", txn=request.txn, instant=entry.instant, position=position)
    pending = await _finished(handle, properties, position, entry.instant)
    return WriteResult.of(position, entry, is_rerun=True, pending=pending)


def committed_job(
    handle: TableHandle, properties: TableProperties, request: WriteRequest, result: WriteResult, tasks: TaskSettings
) -> WriteJob:
    """Return the job of a write that was committed before; no I/O."""
    ticket = ticket_of(handle, properties, request, instant=result.instant, base=result.position, tasks=tasks)
    return _CommittedJob(handle, result, replace(ticket, is_committed=True))


def ticket_of(
    handle: TableHandle,
    properties: TableProperties,
    request: WriteRequest,
    *,
    instant: str,
    base: int,
    tasks: TaskSettings,
) -> WriteTicket:
    """Return a ticket by which nothing is written."""
    return WriteTicket(
        url=handle.backend.url,
        options=handle.storage,
        instant=instant,
        base=base,
        schema=properties.schema,
        partition_by=properties.partition_by,
        key=properties.key,
        staging=staging_folder(instant),
        marker_kind="direct",
        service=None,
        settings=tasks,
        max_file_bytes=NO_SIZING.max_file_bytes,
        where=request.where,
    )


async def _finished(handle: TableHandle, properties: TableProperties, position: int, instant: str) -> str | None:
    """Do the remaining steps of a commit. Return what is pending where they cannot be done now."""
    try:
        left = {entry.path.rpartition("/")[2] async for entry in handle.backend.list(OPEN_FOLDER)}
        if left:
            left -= {ended.instant for ended in await end_abandoned(handle, properties)}
        if instant in left:  # its writer seems to live: only what readers wait for
            await delete_replaced(handle, properties, position)
    except BackendError as error:
        _events.warning("instant.unfinished", instant=instant, reason=error)
        return f"its writer may have left something to do ({error}); the next write or clean does it"
    return None
