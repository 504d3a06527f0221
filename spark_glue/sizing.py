"""Sized write of a DataFrame: its rows are counted, planned, and sent to the tasks of their planned files.

Path of the rows::

    profile -> (sample) -> WriteJob.size -> tasks_of -> routing -> stage
"""

from collections.abc import Callable, Collection, Iterable
from functools import partial

from anyio.from_thread import BlockingPortal
from pyspark.sql import DataFrame

from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.evidence import SIGNIFICANT_BYTES
from tallymark.engine.sizing.plan import SizingPlan
from tallymark.engine.sizing.profile import WorkloadProfile
from tallymark.engine.sizing.tasks import TASK_FILES, tasks_of
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile
from tallymark.spark_glue.profile import Profile, profiled
from tallymark.spark_glue.routing import Tasks, routed
from tallymark.spark_glue.sample import sampled

DEFAULT_SIZING: SizingSettings | None = None
"""Settings of a write without ``sizing``: files are finished when they are full, and nothing is planned."""

TASK_BYTES = 32 * 1024 * 1024
"""Bytes of files for which a task is worth its start: about two seconds of work for about 50 ms. A larger file has one
task, too.
"""


def sized(
    df: DataFrame, job: WriteJob, portal: BlockingPortal, sizing: SizingSettings | None
) -> tuple[DataFrame, Tasks]:
    """Return the same rows in as many Spark partitions as the plan has tasks, each with the rows of its planned files.

    The DataFrame is computed once by a Spark job that counts and, where the table's files do not show the size of rows,
    once more to sample it; the write itself computes it again. With sizing off this does nothing.

    Raises:
        InvalidRequest: a row is in a partition that this write may not touch, or does not fit the table.
        JobFailed: Spark gave up.
    """
    if sizing is None or not sizing.is_on:
        return df, ()
    profile, found = workload(df, job.ticket, partial(portal.call, job.reference_files), sizing)
    tasks = tasks_for(portal.call(job.size, found), job.ticket, sizing)
    return (routed(df, tasks, profile.paths, job.ticket.partition_by) if tasks else df), tasks


def tasks_for(plan: SizingPlan, ticket: WriteTicket, sizing: SizingSettings) -> Tasks:
    """Return the planned files of each task."""
    return tasks_of(
        plan,
        task_bytes=min(TASK_BYTES, sizing.max_file_bytes),
        task_files=min(TASK_FILES, ticket.settings.open_file_count),
    )


def workload(
    df: DataFrame, ticket: WriteTicket, files: Callable[[Collection[str]], Iterable[DataFile]], sizing: SizingSettings
) -> tuple[Profile, WorkloadProfile]:
    """Return the input of a plan.

    ``files`` returns the table's files; where they do not show the size of rows, a sample does.
    """
    profile = profiled(df, ticket)
    sample = None
    if profile.incoming and sizing.policy != "hudi":
        measured = files([rows.partition for rows in profile.incoming])
        sample = None if has_estimate(profile.plain_bytes, measured) else sampled(df, ticket, profile)
    return profile, WorkloadProfile(incoming=profile.incoming, sample=sample)


def has_estimate(plain_bytes: int, files: Iterable[DataFile]) -> bool:
    """Return whether files of the table show the encoded size of that many bytes of rows.

    Small files are less significant, however many they are, but sufficient where no more is added than they contain.
    """
    measured = [file for file in files if file.plain_bytes]
    enough = any(file.bytes >= SIGNIFICANT_BYTES for file in measured)
    return enough or sum(file.plain_bytes for file in measured) >= plain_bytes
