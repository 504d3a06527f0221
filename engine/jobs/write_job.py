"""One write on a table, from its instant to its commit."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial

import anyio
from anyio.abc import TaskGroup

from tallymark.backends.errors import BackendError
from tallymark.backends.events import EventLog
from tallymark.backends.shown import shown
from tallymark.engine.errors import CommitUnknown, ConflictError, InvalidRequest, Sealed, TallymarkError
from tallymark.engine.instants.fencing import Fencer
from tallymark.engine.instants.finish import drop_bookkeeping, finish, staging_folder
from tallymark.engine.instants.marked import Marked, directly_marked, marked_in_storage
from tallymark.engine.instants.project import project
from tallymark.engine.instants.reserve import passed
from tallymark.engine.instants.rollback import roll_back
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.base import WriteBase
from tallymark.engine.jobs.changes import JobChanges
from tallymark.engine.jobs.commit_check import check_commit
from tallymark.engine.jobs.file_plan import reference_files
from tallymark.engine.jobs.fill_claims import claim_path
from tallymark.engine.jobs.job_sizing import JobSizing
from tallymark.engine.jobs.keyed import KeyedChanges, LateFilesError
from tallymark.engine.jobs.lost_fills import LostFillRewriter
from tallymark.engine.jobs.reports import check_reports
from tallymark.engine.jobs.request import WriteRequest
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.jobs.selected import SelectedChanges
from tallymark.engine.jobs.target import WriteTarget
from tallymark.engine.jobs.txn import committed_write, declared
from tallymark.engine.lazy import Lazy
from tallymark.engine.markers.direct_flag import close_direct, flag_path, is_flagged
from tallymark.engine.markers.directory import MarkerDirectory
from tallymark.engine.metrics.registry import JobMeter
from tallymark.engine.rpc.commit_broker import CommitBroker
from tallymark.engine.rpc.in_process import serving
from tallymark.engine.rpc.messages import Commit
from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.plan import SizingPlan
from tallymark.engine.sizing.profile import WorkloadProfile
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.conflict import beyond_compactions
from tallymark.engine.timeline.entry import CHANGES, PRODUCERS, DataFile, LogEntry, encode_entry
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.lease import Lease
from tallymark.engine.timeline.log import new_nonce
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.reservation import Reservation
from tallymark.engine.timeline.summary import WriteSummary
from tallymark.engine.upsert.keys import KeyReport
from tallymark.engine.upsert.locate import Lookup
from tallymark.engine.views.partitions import Partitions

_events = EventLog(__name__)


class WriteJob:
    """Made by ``Table.write``, whose block ends it: if it is not committed by then, it is rolled back."""

    def __init__(
        self,
        handle: TableHandle,
        properties: TableProperties,
        reservation: Reservation,
        base: WriteBase,
        *,
        request: WriteRequest,
        directory: MarkerDirectory,
        lease: Lease,
        confirmed: Lazy[bool],
        meter: JobMeter,
        ticket: WriteTicket,
        sizing: SizingSettings,
        broker: CommitBroker | None = None,
    ) -> None:
        self._handle = handle
        self._properties = properties
        self._reservation = reservation
        self._base = base
        self._request = request
        self._target = WriteTarget.of(request, properties)
        self._directory = directory
        self._lease = lease
        self._broker = broker
        self._confirmed = confirmed
        self._meter = meter
        self._ticket = ticket
        self._sizing = JobSizing(
            handle,
            properties,
            sizing,
            ticket.instant,
            is_overwrite=self._target.is_overwrite,
            has_updates=request.has_changes,
        )
        self._changes: JobChanges | None = None
        if self._target.predicate is not None:
            self._changes = SelectedChanges(handle, properties, ticket, self._target)
        elif request.is_keyed:
            self._changes = KeyedChanges(handle, properties, ticket, request)
        self._recut = LostFillRewriter(handle, lease, ticket)
        self._started = anyio.current_time()
        self._committed: WriteResult | None = None
        self._is_served_here = ticket.service is not None and not ticket.service.job
        """Whether every marker that a task has not put itself was acked by this process."""
        self._has_direct = not self._is_served_here
        """Whether other processes may have put markers; for a job whose service is here, as its seal has shown."""
        self._added: tuple[DataFile, ...] | None = None
        """Files of the first call of ``commit``: all others have been fenced since, or may have been."""
        self._entry: LogEntry | None = None
        self._producers: Mapping[str, tuple[int, int]] = {}
        self._is_decided = False
        self._is_rolled_back = False
        self._has_ended = False

    @property
    def instant(self) -> str:
        return self._reservation.instant

    @property
    def ticket(self) -> WriteTicket:
        """What tasks need, in any process of any engine."""
        return self._ticket

    @property
    def committed(self) -> WriteResult | None:
        """The result, once the write is committed: by this job, or under the same txn by another one.

        If it is set when the job starts, tasks need not run, and ``commit(())`` returns it.
        """
        return self._committed

    @property
    def result(self) -> WriteResult:
        """The result of the commit; once the block has ended, with what is ``pending`` by then."""
        committed = self.committed
        assert committed is not None, "commit comes first"
        return committed

    @property
    def marker_count(self) -> int | None:
        """Markers that the job's service has acked so far; None where it is not in this process."""
        return self._directory.durable_count if self._is_served_here else None

    def serving_threads(self, tasks: TaskGroup) -> AbstractContextManager[None]:
        """Serve markers to tasks in threads of this process during the block, without a connection."""
        if not self._is_served_here or self._ticket.service is None:
            return nullcontext()
        return serving(self._ticket.service, tasks, self._directory)

    async def look_up(self, keys: Iterable[KeyReport] = ()) -> tuple[Lookup, ...]:
        """Return the lookups by which ``locate_task`` finds the rows of the table to change; none where it has none.

        ``keys`` are the reports of ``key_task``, one per task, for all rows of this write; none with ``where``.

        Raises:
            InvalidRequest: the job is not an upsert or delete, reports are of another job or twice of one task, or the
                job may not touch a file all of whose rows match.
        """
        return await self._changing().look_up(keys)

    def profile(self, hits: Mapping[str, int]) -> WorkloadProfile:
        """Return what ``size`` needs. ``hits`` are the number of rows that the lookups have found in each file.

        Raises:
            InvalidRequest: a file that was not looked up or that the job may not touch, or keys are there and
                ``when_matched="fail"``.
            ConflictError: a file was missing, since another writer has replaced it.
        """
        return self._changing().profile(hits)

    def _changing(self) -> JobChanges:
        if self._changes is None:
            raise InvalidRequest(
                f"a write of mode {self._request.mode!r} looks no rows up; say mode='upsert' or 'delete'"
            )
        return self._changes

    async def size(self, profile: WorkloadProfile) -> SizingPlan:
        """Plan the files of the rows that this write adds, and publish which small files it fills.

        With sizing off a write by key plans the files whose rows it changes and new ones, and any other write nothing.
        An overwrite fills nothing, since it replaces those files. Tasks get the planned files as
        ``write_task(..., planned=...)``, grouped by ``tasks_of``. A later plan replaces an earlier one.
        """
        return await self._sizing.plan(profile)

    async def claim(self, files: Iterable[DataFile]) -> None:
        """Publish that this job rewrites these files, so that no plan of another one fills them. Advice, not a lock."""
        await self._sizing.claim(files)

    async def commit(
        self, reports: Iterable[TaskReport], *, producers: Mapping[str, tuple[int, int]] | None = None
    ) -> WriteResult:
        """Make exactly the reported files part of the table. On return ``tallymark.read`` sees them; when the block has
        ended, readers of the Hudi format too, unless ``committed`` has ``pending`` by then: then the next write or
        clean projects the commit.

        ``producers`` are those of the rows of a stream, each with the sequence numbers of its first and last batch:
        none of these may have been committed before.

        ``reports`` are those of the winning attempt of each task, one per task. All other files that the job's tasks
        have written, or may yet write, are fenced first. A commit that failed may be called again with the same
        reports. After CommitUnknown, later calls report a silence of storage as CommitUnknown too. If another job has
        committed the txn of this one since, its result is returned, and this job is rolled back when its block ends.

        Raises:
            ConflictError: another write that conflicts with this one committed first.
            RolledBack: another writer treated this job as dead and ended it.
            TableReplaced: the table was removed, created again or restored since the job started.
            InvalidRequest: reports of another job, two of one task, other ones than before, or files where this write
                may not put any; or another job has committed the txn of this one with other arguments. Nothing was
                decided.
            CommitUnknown: storage did not answer while the commit was being decided.
            TryAgain: a batch of a producer was committed before.
        """
        self._producers = producers or {}
        if self._committed is not None and self._committed.is_rerun:
            return self._committed
        if self._is_decided or self._has_ended:
            raise self._too_late()
        if not await self._confirmed.get():
            raise passed(self.instant)
        started = anyio.current_time()
        winners = check_reports(reports, self.instant)
        added = tuple(sorted((file for report in winners for file in report.files), key=lambda file: file.path))
        self._target.check(added)
        self._meter.reported(winners)
        try:
            self._meter.proposed(await self._prepared(winners, added))
        except ConflictError as error:  # a file that is missing, perhaps since a twin has replaced it
            twin = await committed_write(self._handle.log, self._request.txn, declared(self._target))
            if twin is None:
                raise self._conflicted(error) from error.__cause__
            return await self._yield_to_others(*twin)
        position, entry = await self._win()
        if entry is not self._entry:
            return await self._yield_to_others(position, entry)
        self._is_decided = True
        self._meter.committed()
        _events.info(
            "instant.committed",
            instant=self.instant,
            position=position,
            operation=entry.operation,
            rows=entry.new_rows,
            bytes=sum(file.bytes for file in entry.added),
            files=len(entry.added),
            removed=len(entry.removed),
            filled=len(entry.filled),
            rewritten_bytes=sum(file.bytes for file in entry.filled),
            fences=len(entry.fenced),
            marker_wait_s=sum(report.marker_wait_s for report in winners),
            seconds=anyio.current_time() - started,
        )
        self._committed = WriteResult.of(position, entry)
        return self._committed

    async def reference_files(self, partitions: Iterable[str]) -> tuple[DataFile, ...]:
        """Return the live files of these partitions and the newest files, by the part of the log that the job has read.

        ``size`` uses them for rows of these partitions.
        """
        view = self._handle.view(self._properties)
        return await reference_files(view.at(view.head), partitions)

    async def partitions(self) -> Partitions:
        """Return the partitions that contain files, by everything committed so far. Reads the log's end."""
        await self._handle.log.refresh()
        return Partitions.of(self._handle.view(self._properties))

    async def end(self) -> None:
        """Finish what was committed, or roll back. Called by the block's end; safe to call again."""
        self._has_ended = True
        self._directory.seal()
        await self._lease.give_up()
        await self._directory.drained()  # a segment that lands after the others were deleted would stay
        if not await self._confirmed.get():
            await drop_bookkeeping(self._handle, self.instant)  # no marker was acked
            self._is_rolled_back = True
            self._meter.rolled_back()
            return
        if self._is_decided and self._committed is not None and not self._committed.is_rerun:
            if self._handle.log.history.head < self._committed.position:  # it was decided outside of this process
                await self._handle.log.refresh()
            pending = await self._project(self._committed.position)
            self._committed = replace(self._committed, pending=pending)
        if self._is_decided:
            await finish(
                self._handle,
                self._properties,
                self._reservation,
                objects=self._objects(),
                is_projected=self._committed is not None and self._committed.pending is None,
            )
        else:
            ended = await roll_back(self._handle, self._properties, self._reservation, is_own=True)
            self._is_decided = ended.outcome == "was committed"  # by a commit whose answer was missing
            self._is_rolled_back = not self._is_decided
            if self._is_decided:
                self._meter.committed()
            else:
                self._meter.rolled_back()

    def _too_late(self) -> TallymarkError:
        if self._is_decided:
            return InvalidRequest(f"job {self.instant} has been committed already; begin a new one to write more")
        if self._is_rolled_back:
            return InvalidRequest(f"job {self.instant} was rolled back when its block ended; begin a new one")
        return CommitUnknown(
            f"job {self.instant} is over, and storage gave no clear outcome; see tallymark timeline "
            f"{shown(self._handle.backend.url)} once it does",
            instant=self.instant,
        )

    async def _seal(self) -> Marked:
        """Stop all acks, of the service and of tasks with direct markers; return what was marked."""
        self._directory.seal()
        backend = self._handle.backend
        if self._is_served_here:
            await backend.close_staging(staging_folder(self.instant))
            if not self._ticket.departure.close():  # tasks may run where the service cannot be reached
                self._has_direct = await self._found_direct()
        if self._has_direct:
            await self._fencer().close()
        if self._reservation.marker_kind == "direct":
            return Marked(batched=frozenset(), direct=await directly_marked(backend, self.instant))
        if not self._is_served_here:
            return await marked_in_storage(self._handle, self._reservation, is_outside=True)
        direct = await directly_marked(backend, self.instant) if self._has_direct else frozenset()
        acked = await self._directory.paths()
        return Marked(batched=acked - direct, direct=direct, segments=self._directory.segment_count)

    async def _found_direct(self) -> bool:
        if self._handle.backend.has_staging:
            return await is_flagged(self._handle.backend, self.instant)
        return not await close_direct(self._handle.backend, self.instant)

    def _objects(self) -> frozenset[str] | None:
        """Return the objects that the job has put beside its markers, and these; None where tasks, or the job itself,
        have put direct markers, and where key tasks have stored keys, of which only the winners' are reported.
        """
        if self._has_direct or self._recut.has_started or self._changes is not None:
            return None
        others = {flag_path(self.instant)}  # of a task that came too late to count
        if self._sizing.has_claimed:
            others.add(claim_path(self.instant))
        return self._directory.objects | others

    def _log_fallback(self, marked: Marked, winners: list[TaskReport]) -> None:
        if self._reservation.marker_kind == "batched" and marked.direct:
            _events.warning(
                "markers.mixed",
                instant=self.instant,
                direct=len(marked.direct),
                markers=len(marked.paths),
                tasks=sum(report.direct_markers > 0 for report in winners),
            )

    async def _check_marked(self, added: tuple[DataFile, ...], marked: frozenset[str]) -> None:
        stray = next((file.path for file in added if file.path not in marked), None)
        if stray is not None:
            await self._lease.check_log()  # a writer that rolls an instant back drops its markers
            raise InvalidRequest(
                f"reported file {stray} was never marked; only files that write_task wrote can be committed"
            )

    async def _prepared(self, winners: list[TaskReport], added: tuple[DataFile, ...]) -> LogEntry:
        """Return the job's entry after fencing all files but its own; the same entry again whenever commit is called
        again.

        Fencing is not repeated: once the entry may be in the log, another writer may have finished the job and dropped
        its markers.
        """
        if self._added not in (None, added):
            raise InvalidRequest(
                f"job {self.instant} was to be committed with other files before, and those of these reports may have "
                "been removed since; call commit with the same reports again, or begin a new job"
            )
        if self._entry is None:
            fills = self._sizing.checked(winners)
            if self._changes is not None:
                await self._handle.log.refresh()
                self._changes.check(winners, self._sizing.planned)
            marked = await self._seal()
            _events.info("instant.sealed", instant=self.instant, markers=len(marked.paths), direct=len(marked.direct))
            self._log_fallback(marked, winners)
            await self._check_marked(added, marked.paths)
            self._added = added
            self._sizing.reported(fills, winners)
            unused = {path for report in winners for path in report.unused}
            fenced = await self._fencer().fence(marked.paths - unused, keep={file.path for file in added})
            replaced = await self._base.replaced(self._target.scope(added))
            replaced += tuple(file for report in winners for file in report.rewrites)
            replaced += () if self._changes is None else self._changes.removed
            self._entry = self._new_entry(added, replaced, fenced, marked)
        return self._entry

    async def _win(self) -> tuple[int, LogEntry]:
        """Return the position and entry of the commit: this job's own, or that of another job of the same txn."""
        while True:
            entry = self._entry
            assert entry is not None, "it was prepared"
            try:
                position = await self._decide(entry)
            except LateFilesError as late:
                await self._look_up_late(late)
            except ConflictError as error:
                twin = await committed_write(self._handle.log, entry.txn, entry.request)
                if twin is not None:
                    return twin
                history = await self._handle.log.reach(entry.base)  # it may have been read again since
                if not self._follow_compactions(entry, history):
                    await self._give_up_fills(entry, history, error)
            except CommitUnknown as error:
                _events.warning("instant.unclear", instant=self.instant, reason=error)
                raise
            else:
                return position, entry

    async def _decide(self, entry: LogEntry) -> int:
        """Return the position of the entry in the log, which the job's broker puts, or this process."""
        log, is_asked = self._handle.log, False
        if self._broker is not None and self._changes is None and await self._broker.is_there():
            is_asked = True
            position = await self._broker.commit(self._request_of(entry, log.history))
            if position is not None and self._lease.is_fresh:  # otherwise it is read whether the entry is in this log
                return position
        return await log.win(
            entry,
            check=partial(self._check, entry),
            is_protected=lambda: self._lease.is_fresh,
            joins=self._changes is None,
            is_asked=is_asked,
        )

    def _request_of(self, entry: LogEntry, history: History) -> Commit:
        data = encode_entry(replace(entry, table=history.table))
        return Commit(0, history.head, history.hash_at(history.head), data, self._firsts(entry))

    def _firsts(self, entry: LogEntry) -> tuple[int, ...]:
        return tuple(self._producers[producer][0] for producer, _ in entry.producers)

    def _follow_compactions(self, entry: LogEntry, history: History) -> bool:
        """Replace the files into which those of the base were merged since. Return whether there are any."""
        followed = beyond_compactions(entry, history.after(entry.base))
        if followed is None:
            return False
        self._entry = replace(followed, nonce=new_nonce())
        self._meter.proposed(self._entry)
        return True

    async def _give_up_fills(self, entry: LogEntry, history: History, error: ConflictError) -> None:
        """Rewrite the lost fills, or raise the conflict if there are none: an append never fails because of a small
        file.
        """
        lost = self._sizing.lost(history)
        if not lost:
            raise self._conflicted(error)
        cut = await self._recut.entry_without(entry, lost, self._fencer())
        self._sizing.give_up(lost)
        assert cut.summary is not None, "it is this job's own"
        self._entry = replace(cut, summary=replace(cut.summary, sizing=self._sizing.summary(cut.added)))
        self._meter.proposed(self._entry)

    async def _look_up_late(self, late: LateFilesError) -> None:
        assert isinstance(self._changes, KeyedChanges), "a delete by predicate leaves rows alone that came since"
        try:
            await self._changes.look_up_late(late)
        except ConflictError as error:
            raise self._conflicted(error) from error.__cause__
        except Sealed:
            await self._lease.check_log()  # a writer that rolls an instant back deletes its keys
            raise

    def _conflicted(self, error: ConflictError) -> ConflictError:
        """Return the error, after recording it."""
        self._meter.conflicted()
        _events.warning("instant.conflicted", instant=self.instant, winner=error.winner, partition=error.partition)
        return error

    async def _yield_to_others(self, position: int, twin: LogEntry) -> WriteResult:
        """Return the result of another job that has committed the txn; the block's end rolls this job back."""
        _events.info("txn.committed", txn=twin.txn, instant=twin.instant, position=position)
        pending = await self._project(position)
        self._committed = WriteResult.of(position, twin, is_rerun=True, pending=pending)
        return self._committed

    async def _project(self, position: int) -> str | None:
        try:
            await project(self._handle, self._properties, position, own=[self.instant])
        except BackendError as error:
            _events.warning("projection.postponed", instant=self.instant, reason=error)
            return f"readers of the Hudi format do not see it yet ({error}); the next write or clean lets them"
        return None

    def _fencer(self) -> Fencer:
        return Fencer(
            backend=self._handle.backend,
            instant=self.instant,
            schema=self._properties.schema,
            settings=self._handle.commit_settings,
        )

    def _new_entry(
        self, added: tuple[DataFile, ...], replaced: tuple[DataFile, ...], fenced: tuple[str, ...], marked: Marked
    ) -> LogEntry:
        needed = (CHANGES,) if self._request.has_changes and self._properties.key is None else ()
        of_writers = (*needed, PRODUCERS) if self._producers else needed
        return LogEntry(
            kind="commit",
            instant=self.instant,
            nonce=new_nonce(),
            base=self._base.position if self._changes is None else self._changes.position,
            operation=self._request.mode,
            scope=self._target.scope(added),
            added=added,
            removed=(*replaced, *self._sizing.filled),
            fenced=fenced,
            txn=self._request.txn,
            request="" if self._request.txn is None else declared(self._target),
            producers=tuple(sorted((producer, last) for producer, (_, last) in self._producers.items())),
            summary=self._summary(marked, added),
            reader_features=needed,
            writer_features=of_writers,
        )

    def _summary(self, marked: Marked, added: tuple[DataFile, ...]) -> WriteSummary:
        return WriteSummary(
            marker_mode=marked.mode(self._reservation.marker_kind),
            markers=len(marked.paths),
            direct_markers=len(marked.direct),
            marker_objects=marked.segments + len(marked.direct),
            puts=max(self._directory.counts.puts, marked.segments) + len(marked.direct),
            seconds=round(anyio.current_time() - self._started, 3),
            sizing=self._sizing.summary(added),
            changes=None if self._changes is None else self._changes.summary,
        )

    def _check(self, entry: LogEntry, history: History) -> None:
        check_commit(entry, self._firsts(entry), history, read=() if self._changes is None else self._changes.read)
        if self._changes is not None:
            self._changes.check_late(history)
