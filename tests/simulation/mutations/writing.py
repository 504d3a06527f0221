"""An instant is reserved first; a marker is durable before its data file; each file is put once, by a separate name."""

import copy
from unittest import mock
from uuid import UUID

from tallymark.backends.errors import AlreadyExists, NotFound, Unavailable
from tallymark.engine.instants import reserve
from tallymark.engine.instants.fencing import Fencer
from tallymark.engine.instants.finish import close_staging
from tallymark.engine.jobs import reports, write_job
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.markers.direct_flag import DirectFlag, is_flagged
from tallymark.engine.markers.directory import MarkerDirectory
from tallymark.engine.markers.segment import BATCHED_TYPE, DIRECT_TYPE, TYPE_FILE, marker_folder
from tallymark.engine.tasks import file_name
from tallymark.engine.tasks.file_name import new_file_name
from tallymark.engine.tasks.marker_prefetch import MarkersAhead
from tallymark.engine.tasks.open_file import OpenFile
from tallymark.engine.timeline import seal
from tallymark.engine.timeline.instant import instant_time
from tallymark.engine.timeline.lease import Lease
from tallymark.engine.timeline.log import new_nonce
from tallymark.engine.timeline.reservation import HEARTBEAT_FOLDER, Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tests.simulation import storage
from tests.simulation.blocking import block_on
from tests.simulation.executor import Stage
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Mutation, Without, both, method, nothing, replaced


async def _put_over(handle, reservation):
    await handle.backend.put(reservation.path, reservation.encode())
    return True


_seal = WriteJob._seal
_is_taken = reserve.is_taken
_reserve = reserve.reserve


async def _read_first(handle, *, operation, marker_kind):
    """As ``reserve``, but for the order of its two looks."""
    newest = (await handle.log.refresh()).reached_instant
    while True:
        instant = instant_time(handle.clock.now(), after=newest)
        reservation = Reservation(
            instant=instant,
            nonce=new_nonce(),
            writer=WriterIdentity.here(),
            marker_kind=marker_kind,
            operation=operation,
            expiry_s=handle.lease_settings.expiry_s,
        )
        lease = Lease(handle.backend, instant, handle.log, handle.lease_settings)
        await lease.begin()
        kind = DIRECT_TYPE if marker_kind == "direct" else BATCHED_TYPE
        await handle.backend.put(f"{marker_folder(instant)}/{TYPE_FILE}", kind)
        if await _is_taken(handle, reservation):
            return reservation, lease
        newest = max(newest, instant)


async def _without_beat(handle, **options):
    muted = copy.copy(handle)
    muted.backend = Without(handle.backend, "put", HEARTBEAT_FOLDER)
    reservation, lease = await _reserve(muted, **options)
    lease._backend = handle.backend
    return reservation, lease


async def _blind_to_open(handle, **options):
    """Reserve without regard to the instants of open writers, but recover them."""
    await handle.log.refresh()
    listed, handle.log.listed_open = handle.log.listed_open, frozenset()
    reservation, lease = await _reserve(handle, **options)
    handle.log.listed_open = listed
    return reservation, lease


async def _nothing_listed(handle, **options):
    reservation, lease = await _reserve(handle, **options)
    handle.log.listed_open = frozenset()
    return reservation, lease


BEGIN = (
    Mutation(
        name="an instant is reserved by a plain put, whether an open writer has it or not",
        breaks="two writers of one millisecond share an instant, its markers and its end",
        fault=lambda: both(replaced(reserve.is_taken, _put_over), replaced(reserve.reserve, _blind_to_open)),
    ),
    Mutation(
        name="the log is read before the reservation",
        where=(where.has_twins,),
        breaks="an instant is taken that has been committed in between",
        fault=lambda: replaced(reserve.reserve, _read_first),
    ),
    Mutation(
        name="no heartbeat is put before the reservation",
        breaks="a writer that has just started is treated as dead",
        fault=lambda: replaced(reserve.reserve, _without_beat),
    ),
    Mutation(
        name="a writer does not look for open instants",
        where=(where.has_mishap_or_storm,),
        breaks="what a dead writer has left stays",
        fault=lambda: replaced(reserve.reserve, _nothing_listed),
    ),
)


async def _close_staging_only(fencer):
    await close_staging(fencer.backend, fencer.instant)


async def _flag_first(job):
    flagged = await is_flagged(job._handle.backend, job.instant)

    async def as_read(*_):
        return flagged

    with mock.patch.object(write_job, "is_flagged", as_read):
        return await _seal(job)


MARKERS = (
    Mutation(
        name="a data file is started before its marker is acked",
        breaks="a file is stored that no marker names",
        fault=lambda: method(MarkersAhead, "_await", lambda *_: None),
    ),
    Mutation(
        name="an ack does not check its lease",
        where=(where.without_staging, where.has_halted_service),
        breaks="a writer that was rolled back while it was paused keeps acking",
        fault=lambda: method(Lease, "check_open", nothing),
    ),
    Mutation(
        name="the service is not sealed",
        where=(where.without_staging, where.has_service, where.has_late_tasks),
        breaks="a marker is acked after the job has read its markers",
        fault=lambda: method(MarkerDirectory, "seal", lambda _: None),
    ),
    Mutation(
        name="the seal is not put",
        where=(where.without_staging, where.has_direct, where.has_late_tasks),
        breaks="a task that puts its own markers does not learn that the job has ended",
        fault=lambda: method(Fencer, "close", _close_staging_only),
    ),
    Mutation(
        name="a task that falls back puts its markers without the flag",
        where=(where.has_service,),
        breaks="its job treats what it has marked as unmarked: files of lost attempts stay",
        fault=lambda: method(DirectFlag, "put", nothing),
    ),
    Mutation(
        name="a job looks for the flag of direct markers before it puts its seal",
        where=(where.halts_at_its_flag,),
        breaks="what a task marks itself in between is neither committed nor excluded",
        fault=lambda: method(WriteJob, "_seal", _flag_first),
    ),
    Mutation(
        name="a task that puts its own markers reads neither the seal nor the log",
        where=(where.without_staging, where.has_late_tasks),
        breaks="its marker lands after the job has read them, and its file after that",
        fault=lambda: replaced(seal.check_unsealed, nothing),
    ),
)


_begun = OpenFile._begun
_rename = OpenFile._rename
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


def _open_again(file, backend, staging):
    try:
        return backend.new_file(file._file.path, staging=staging)
    except NotFound:
        block_on(backend.open_staging(staging))
        return backend.new_file(file._file.path, staging=staging)


def _rename_unmarked(file, names_tried, error):
    before, file._take = file._take, lambda _: new_file_name(instant=file._instant, task=0, stage=0, attempt=0)
    _rename(file, names_tried, error)
    file._take = before


def _rename_and_give_back(file, names_tried, error):
    vars(file._take.__self__).setdefault("given_back", []).append(file._file.path)
    _rename(file, names_tried, error)


def _unused_and_given_back(ahead):
    return (*_unused(ahead), *vars(ahead).get("given_back", ()))


def _hear_all(stage, report, task, process):
    if report is not None:
        vars(stage).setdefault("reports", []).append(report)
    _receive(stage, report, task, process)


async def _report_all(stage, patience_s):
    await _run(stage, patience_s)
    return list(vars(stage).get("reports", []))


def _same_file_id(*, instant, task, stage, attempt):
    return f"{UUID(int=task, version=4)}-0_{task}-{stage}-{attempt}_{instant}.parquet"


DATA = (
    Mutation(
        name="a data file whose put was not answered is put again under its name",
        where=(where.without_staging, where.has_storm, where.has_late_tasks),
        breaks="the first copy is deleted as a loser's, and the second lands after that",
        fault=lambda: method(OpenFile, "_begun", lambda *of: _Repeated(_begun(*of))),
    ),
    Mutation(
        name="the store's client repeats the put of a data file",
        where=(where.without_staging, where.has_repeats),
        breaks="its first copy lands after the second was deleted as a loser's",
        fault=lambda: mock.patch.object(storage, "TWICE", (*storage.TWICE, "data")),
    ),
    Mutation(
        name="a file whose put is unclear is put under another name that was not marked",
        where=(where.without_staging, where.has_storm),
        breaks="a file is stored that no marker names",
        fault=lambda: method(OpenFile, "_rename", _rename_unmarked),
    ),
    Mutation(
        name="the name of a file whose put is unclear is given back as unused",
        where=(where.without_staging, where.has_storm),
        breaks="no process closes it, and the file is stored twice",
        fault=lambda: both(
            method(OpenFile, "_rename", _rename_and_give_back),
            mock.patch.object(MarkersAhead, "unused", property(_unused_and_given_back)),
        ),
    ),
    Mutation(
        name="a task opens a closed staging directory again",
        where=(where.with_staging, where.has_late_tasks),
        breaks="it publishes after its job has ended",
        fault=lambda: method(OpenFile, "_begun", _open_again),
    ),
    Mutation(
        name="all attempts that have finished are committed, not one per task",
        by=("rows_are_those_of_committed_writers",),
        breaks="rows are in the table twice",
        fault=lambda: both(
            method(Stage, "_receive", _hear_all),
            method(Stage, "run", _report_all),
            replaced(reports.check_reports, lambda reports, _: list(reports)),
        ),
    ),
    Mutation(
        name="the files of a task share a file id",
        breaks="readers of the Hudi format treat one as a newer version of the other",
        fault=lambda: replaced(file_name.new_file_name, _same_file_id),
    ),
)
