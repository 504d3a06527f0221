"""Tallymark: write jobs of a data lake that leave exactly the files they committed.

    tallymark.write(df, url, mode="append")         PySpark: write a DataFrame, commit it
    tallymark.plan(df, url, mode="append")          PySpark: what that write would do
    tallymark.read(spark, url)                      PySpark: a native scan of exactly the committed files
    tallymark.reading(spark, url)                   PySpark: the same for a block, in which no clean takes them away
    tallymark.open_table(url)                       any engine: jobs, tickets, reports, commit, rollback, clean
    tallymark.write_task(ticket, batches, task=n)   any engine: what a task runs
    tallymark.open_view(ticket)                     any engine: what the table held when the job began, for a task
    tallymark.open_marker_engine(backend)           the marker engine alone
    tallymark.open_backend(url)                     storage

Names are imported when they are first used: neither Spark nor any storage's library is needed for the others.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tallymark.backends import Backend as Backend
    from tallymark.backends import BackendError as BackendError
    from tallymark.backends import InvalidPath as InvalidPath
    from tallymark.backends import NotPermitted as NotPermitted
    from tallymark.backends import StorageOptions as StorageOptions
    from tallymark.backends import Unavailable as Unavailable
    from tallymark.backends import open_backend as open_backend
    from tallymark.engine.errors import CommitUnknown as CommitUnknown
    from tallymark.engine.errors import ConflictError as ConflictError
    from tallymark.engine.errors import CorruptObject as CorruptObject
    from tallymark.engine.errors import InvalidRequest as InvalidRequest
    from tallymark.engine.errors import JobFailed as JobFailed
    from tallymark.engine.errors import MissingExtra as MissingExtra
    from tallymark.engine.errors import RolledBack as RolledBack
    from tallymark.engine.errors import Sealed as Sealed
    from tallymark.engine.errors import ServiceUnavailable as ServiceUnavailable
    from tallymark.engine.errors import TallymarkError as TallymarkError
    from tallymark.engine.errors import UnsupportedTable as UnsupportedTable
    from tallymark.engine.inspection.explain_text import Explanation as Explanation
    from tallymark.engine.inspection.file_sizes import FileSizes as FileSizes
    from tallymark.engine.inspection.snapshot import Snapshot as Snapshot
    from tallymark.engine.jobs.result import WriteResult as WriteResult
    from tallymark.engine.jobs.write_job import WriteJob as WriteJob
    from tallymark.engine.lookups.job_view import JobView as JobView
    from tallymark.engine.lookups.job_view import open_view as open_view
    from tallymark.engine.markers import MarkerDirectory as MarkerDirectory
    from tallymark.engine.markers import MarkerEngine as MarkerEngine
    from tallymark.engine.markers import open_marker_engine as open_marker_engine
    from tallymark.engine.metrics.prometheus import register_metrics as register_metrics
    from tallymark.engine.planning.input_rows import CountedRows as CountedRows
    from tallymark.engine.planning.write_plan import WritePlan as WritePlan
    from tallymark.engine.settings import CommitSettings as CommitSettings
    from tallymark.engine.settings import LeaseSettings as LeaseSettings
    from tallymark.engine.settings import MarkerSettings as MarkerSettings
    from tallymark.engine.settings import ServiceSettings as ServiceSettings
    from tallymark.engine.settings import SizingSettings as SizingSettings
    from tallymark.engine.settings import TaskSettings as TaskSettings
    from tallymark.engine.settings import ViewSettings as ViewSettings
    from tallymark.engine.sizing import IncomingRows as IncomingRows
    from tallymark.engine.sizing import PlannedFile as PlannedFile
    from tallymark.engine.sizing import SizingPlan as SizingPlan
    from tallymark.engine.sizing import WorkloadProfile as WorkloadProfile
    from tallymark.engine.sizing import tasks_of as tasks_of
    from tallymark.engine.table import Table as Table
    from tallymark.engine.table import open_table as open_table
    from tallymark.engine.tasks.profile_batches import profile_batches as profile_batches
    from tallymark.engine.tasks.report import TaskReport as TaskReport
    from tallymark.engine.tasks.task_writer import write_task as write_task
    from tallymark.engine.tasks.ticket import WriteTicket as WriteTicket
    from tallymark.spark_glue.catalog import sync_catalog as sync_catalog
    from tallymark.spark_glue.read import read as read
    from tallymark.spark_glue.read import reading as reading
    from tallymark.spark_glue.write import plan as plan
    from tallymark.spark_glue.write import write as write

__version__ = "0.1.0"

_HOMES = {
    "tallymark.backends": (
        "Backend",
        "BackendError",
        "InvalidPath",
        "NotPermitted",
        "StorageOptions",
        "Unavailable",
        "open_backend",
    ),
    "tallymark.engine.errors": (
        "CommitUnknown",
        "ConflictError",
        "CorruptObject",
        "InvalidRequest",
        "JobFailed",
        "MissingExtra",
        "RolledBack",
        "Sealed",
        "ServiceUnavailable",
        "TallymarkError",
        "UnsupportedTable",
    ),
    "tallymark.engine.lookups.job_view": ("JobView", "open_view"),
    "tallymark.engine.tasks.profile_batches": ("profile_batches",),
    "tallymark.engine.tasks.report": ("TaskReport",),
    "tallymark.engine.tasks.task_writer": ("write_task",),
    "tallymark.engine.tasks.ticket": ("WriteTicket",),
    "tallymark.engine.markers": ("MarkerDirectory", "MarkerEngine", "open_marker_engine"),
    "tallymark.engine.settings": (
        "CommitSettings",
        "LeaseSettings",
        "MarkerSettings",
        "ServiceSettings",
        "SizingSettings",
        "TaskSettings",
        "ViewSettings",
    ),
    "tallymark.engine.sizing": ("IncomingRows", "PlannedFile", "SizingPlan", "WorkloadProfile", "tasks_of"),
    "tallymark.engine.table": ("Table", "open_table"),
    "tallymark.engine.jobs.write_job": ("WriteJob",),
    "tallymark.engine.jobs.result": ("WriteResult",),
    "tallymark.engine.planning.input_rows": ("CountedRows",),
    "tallymark.engine.planning.write_plan": ("WritePlan",),
    "tallymark.engine.inspection.explain_text": ("Explanation",),
    "tallymark.engine.inspection.file_sizes": ("FileSizes",),
    "tallymark.engine.inspection.snapshot": ("Snapshot",),
    "tallymark.engine.metrics.prometheus": ("register_metrics",),
    "tallymark.spark_glue.catalog": ("sync_catalog",),
    "tallymark.spark_glue.read": ("read", "reading"),
    "tallymark.spark_glue.write": ("plan", "write"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'tallymark' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
