"""A data file is put once under a name of its own, and only the winner of each task is committed."""

from unittest import mock
from uuid import UUID

from tallymark.backends.errors import AlreadyExists, NotFound, Unavailable
from tallymark.engine.jobs import reports
from tallymark.engine.tasks import file_name
from tallymark.engine.tasks.file_name import new_file_name
from tallymark.engine.tasks.marker_prefetch import MarkersAhead
from tallymark.engine.tasks.open_file import OpenFile
from tests.simulation import storage
from tests.simulation.blocking import block_on
from tests.simulation.executor import Stage
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Mutation, both, method, replaced

_begun = OpenFile._begun
_rename = OpenFile._rename
_unused = MarkersAhead.unused.fget  # type: ignore[attr-defined]
_hear = Stage._hear
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
    _hear(stage, report, task, process)


async def _report_all(stage, patience_s):
    await _run(stage, patience_s)
    return list(vars(stage).get("reports", []))


def _same_file_id(*, instant, task, stage, attempt):
    return f"{UUID(int=task, version=4)}-0_{task}-{stage}-{attempt}_{instant}.parquet"


MUTATIONS = (
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
        breaks="a file exists that no marker names",
        fault=lambda: method(OpenFile, "_rename", _rename_unmarked),
    ),
    Mutation(
        name="a name whose put was unclear is returned as unused",
        where=(where.without_staging, where.has_storm),
        breaks="it is not fenced, and the file exists twice",
        fault=lambda: both(
            method(OpenFile, "_rename", _rename_and_give_back),
            mock.patch.object(MarkersAhead, "unused", property(_unused_and_given_back)),
        ),
    ),
    Mutation(
        name="a task opens the staging directory again that it finds closed",
        where=(where.with_staging, where.has_late_tasks),
        breaks="it continues to publish after its job has ended",
        fault=lambda: method(OpenFile, "_begun", _open_again),
    ),
    Mutation(
        name="all finished attempts are committed, not one per task",
        by=("rows_are_those_of_committed_writers",),
        breaks="rows are in the table twice",
        fault=lambda: both(
            method(Stage, "_hear", _hear_all),
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
