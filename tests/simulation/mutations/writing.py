"""An instant is reserved first; a marker is durable before its data file; each file is put once, by a separate name."""

from unittest import mock
from uuid import UUID

from tallymark.backends.errors import AlreadyExists, NotFound, Unavailable
from tallymark.engine.instants import reserve
from tallymark.engine.instants.fencing import Fencer
from tallymark.engine.instants.finish import close_staging
from tallymark.engine.jobs import reports, write_job
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.maintenance import recovery
from tallymark.engine.markers.direct_flag import DirectFlag, is_flagged
from tallymark.engine.markers.directory import MarkerDirectory
from tallymark.engine.markers.segment import BATCHED_TYPE, DIRECT_TYPE, TYPE_FILE, marker_folder
from tallymark.engine.tasks import file_name
from tallymark.engine.tasks.departure import Departure
from tallymark.engine.tasks.file_name import new_file_name
from tallymark.engine.tasks.marker_prefetch import MarkersAhead
from tallymark.engine.tasks.open_file import OpenFile
from tallymark.engine.timeline import seal
from tallymark.engine.timeline.lease import Lease
from tallymark.engine.timeline.reservation import HEARTBEAT_FOLDER
from tests.simulation import storage
from tests.simulation.blocking import block_on
from tests.simulation.executor import Stage
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Group, both, member, replaced

BEGIN = Group("Beginning")


async def _put_over(handle, reservation):
    await handle.backend.put(reservation.path, reservation.encode())
    return True


_seal = WriteJob._seal
_is_taken = reserve.is_taken
_reserve_next = reserve.reserve_next


async def _blind_to_open(handle, **options):
    """Reserve without regard to the instants of open writers, but recover them."""
    await handle.log.refresh()
    listed, handle.log.listed_open = handle.log.listed_open, frozenset()
    reservation, lease = await _reserve_next(handle, **options)
    handle.log.listed_open = listed
    return reservation, lease


@BEGIN.fault()
def _reserved_by_a_plain_put():
    """An instant is reserved by a plain put, whether an open writer has it or not. So two writers of one millisecond
    share an instant, its markers and its end.
    """
    return both(replaced(reserve.is_taken, _put_over), replaced(reserve.reserve_next, _blind_to_open))


@BEGIN.function(reserve.confirm, where.has_twins)
async def _not_read_again(handle, reservation):
    """The log is not read after the reservation. So an instant is taken that has been committed in between."""
    kind = DIRECT_TYPE if reservation.marker_kind == "direct" else BATCHED_TYPE
    await handle.backend.put(f"{marker_folder(reservation.instant)}/{TYPE_FILE}", kind)
    return True


@BEGIN.function(recovery.read_heartbeats)
async def _without_first(handle):
    """The reservation does not count as a heartbeat. So a writer that has just started is treated as dead."""
    beats = [entry async for entry in handle.backend.list(HEARTBEAT_FOLDER)]
    return {entry.path.rpartition("/")[2]: entry.modified for entry in beats}


@BEGIN.function(reserve.reserve_next, where.has_mishap_or_storm)
async def _nothing_listed(handle, **options):
    """A writer does not look for open instants. So what a dead writer has left stays."""
    reservation, lease = await _reserve_next(handle, **options)
    handle.log.listed_open = frozenset()
    return reservation, lease


MARKERS = Group("Marker, then data")


@MARKERS.member(MarkersAhead, "_await")
def _not_awaited(*_):
    """A data file is started before its marker is acked. So a file is stored that no marker names."""


@MARKERS.member(Lease, "check_open", where.without_staging, where.has_halted_service)
async def _not_checked(*_):
    """An ack does not check its lease. So a writer that was rolled back while it was paused keeps acking."""


@MARKERS.member(MarkerDirectory, "seal", where.without_staging, where.has_service, where.has_late_tasks)
def _not_sealed(_):
    """The service is not sealed. So a marker is acked after the job has read its markers."""


@MARKERS.member(Fencer, "close", where.without_staging, where.has_direct, where.has_late_tasks)
async def _close_staging_only(fencer):
    """The seal is not put. So a task that puts its own markers does not learn that the job has ended."""
    await close_staging(fencer.backend, fencer.instant)


@MARKERS.member(DirectFlag, "put", where.has_service)
async def _not_flagged(*_):
    """A task that falls back puts its markers without the flag. So its job treats what it has marked as unmarked: files
    of lost attempts stay.
    """


@MARKERS.member(Departure, "leave", where.has_service)
def _not_left(_):
    """A ticket that leaves its process is not noticed. So its job does not look for what tasks have marked
    themselves.
    """


@MARKERS.member(WriteJob, "_seal", where.halts_at_its_flag)
async def _flag_first(job):
    """A job looks for the flag of direct markers before tasks can put none any more. So what a task marks itself in
    between is neither committed nor excluded.
    """
    flagged = await is_flagged(job._handle.backend, job.instant)

    async def as_read(*_):
        return flagged

    async def not_closed(*_):
        return not flagged

    with (
        mock.patch.object(write_job, "is_flagged", as_read),
        mock.patch.object(write_job, "close_direct", not_closed),
    ):
        return await _seal(job)


@MARKERS.function(seal.check_unsealed, where.without_staging, where.has_late_tasks)
async def _neither_seal_nor_log(*_):
    """A task that puts its own markers reads neither the seal nor the log. So its marker lands after the job has read
    them, and its file after that.
    """


DATA = Group("Data files and reports")

_begun = OpenFile._begun
_rename = OpenFile.rename
_unused = MarkersAhead.unused.fget  # type: ignore[attr-defined]
_receive = Stage._receive
_run = Stage.run


class _Repeated:
    """A file whose put is sent again where no answer came."""

    def __init__(self, file):
        self._file = file
        self.sink = file.sink
        self.abandon = file.abandon

    def again(self, path):
        return _Repeated(self._file.again(path))

    def publish(self):
        try:
            self._file.publish()
        except Unavailable:
            try:
                self._file.publish()
            except AlreadyExists:
                return  # by the first put, it thinks


def _rename_and_give_back(file, error):
    vars(file._take.__self__).setdefault("given_back", []).append(file._file.path)
    _rename(file, error)


def _unused_and_given_back(ahead):
    return (*_unused(ahead), *vars(ahead).get("given_back", ()))


def _hear_all(stage, report, task, process):
    if report is not None:
        vars(stage).setdefault("reports", []).append(report)
    _receive(stage, report, task, process)


async def _report_all(stage, patience_s):
    await _run(stage, patience_s)
    return list(vars(stage).get("reports", []))


@DATA.member(OpenFile, "_begun", where.without_staging, where.has_storm, where.has_late_tasks)
def _put_again(*of):
    """A data file whose put was not answered is put again under its name. So the first copy is deleted as a loser's,
    and the second lands after that.
    """
    return _Repeated(_begun(*of))


@DATA.fault(where.without_staging, where.has_repeats)
def _repeated_by_the_client():
    """The store's client repeats the put of a data file. So its first copy lands after the second was deleted as a
    loser's.
    """
    return mock.patch.object(storage, "TWICE", (*storage.TWICE, "data"))


@DATA.member(OpenFile, "rename", where.without_staging, where.has_storm)
def _rename_unmarked(file, error):
    """A file whose put is unclear is put under another name that was not marked. So a file is stored that no marker
    names.
    """
    before, file._take = file._take, lambda _: new_file_name(instant=file._instant, task=0, stage=0, attempt=0)
    _rename(file, error)
    file._take = before


@DATA.fault(where.without_staging, where.has_storm)
def _given_back():
    """The name of a file whose put is unclear is given back as unused. So no process closes it, and the file is stored
    twice.
    """
    return both(
        member(OpenFile, "rename", _rename_and_give_back),
        mock.patch.object(MarkersAhead, "unused", property(_unused_and_given_back)),
    )


@DATA.member(OpenFile, "_begun", where.with_staging, where.has_late_tasks)
def _open_again(file, backend, staging):
    """A task opens a closed staging directory again. So it publishes after its job has ended."""
    try:
        return backend.new_file(file._file.path, staging=staging)
    except NotFound:
        block_on(backend.open_staging(staging))
        return backend.new_file(file._file.path, staging=staging)


@DATA.fault(by=("rows_are_those_of_committed_writers",))
def _all_attempts():
    """All attempts that have finished are committed, not one per task. So rows are in the table twice."""
    return both(
        member(Stage, "_receive", _hear_all),
        member(Stage, "run", _report_all),
        replaced(reports.check_reports, lambda reports, _: list(reports)),
    )


@DATA.function(file_name.new_file_name)
def _same_file_id(*, instant, task, stage, attempt):
    """The files of a task share a file id. So readers of the Hudi format treat one as a newer version of the other."""
    return f"{UUID(int=task, version=4)}-0_{task}-{stage}-{attempt}_{instant}.parquet"
