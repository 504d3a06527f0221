"""A write whose files are sized: what it brings is counted, planned, and sent to the tasks of its planned files.

The way of the rows::

    profile -> (sample) -> WriteJob.size -> tasks_of -> routing -> stage
"""

from collections.abc import Callable, Collection, Iterable
from functools import partial

from anyio.from_thread import BlockingPortal
from pyspark.sql import DataFrame

from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.evidence import SIGNIFICANT_BYTES
from tallymark.engine.sizing.profile import WorkloadProfile
from tallymark.engine.sizing.tasks import TASK_FILES, tasks_of
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile
from tallymark.spark_glue.profile import Profile, profiled
from tallymark.spark_glue.routing import Tasks, routed
from tallymark.spark_glue.sample import sampled

DEFAULT_SIZING: SizingSettings | None = None
"""What a write goes by that says nothing of sizing: files are finished when they are full, and nothing is planned."""

TASK_BYTES = 32 * 1024 * 1024
"""Bytes of files for which a task is worth its start: some two seconds of work for some 50 ms. A larger file is one
task's, too."""


def sized(
    df: DataFrame, job: WriteJob, portal: BlockingPortal, sizing: SizingSettings | None
) -> tuple[DataFrame, Tasks]:
    """Return the same rows in as many Spark partitions as the plan has tasks, each with the rows of its planned files.

    It computes the DataFrame once, by a Spark job that counts, and where the table's files do not show what rows
    come to, once more to sample it; the write itself does so again. With sizing off it does nothing.

    Raises:
        InvalidRequest: a row does not lie where this write may put it, or does not fit the table.
        JobFailed: Spark gave up.
    """
    if sizing is None or not sizing.is_on:
        return df, ()
    profile, found = workload(df, job.ticket, partial(portal.call, job.reference_files), sizing)
    plan = portal.call(job.size, found)
    tasks = tasks_of(
        plan,
        task_bytes=min(TASK_BYTES, sizing.max_file_bytes),
        task_files=min(TASK_FILES, job.ticket.settings.open_file_count),
    )
    return (routed(df, tasks, profile.paths, job.ticket.partition_by) if tasks else df), tasks


def workload(
    df: DataFrame, ticket: WriteTicket, files: Callable[[Collection[str]], Iterable[DataFile]], sizing: SizingSettings
) -> tuple[Profile, WorkloadProfile]:
    """Return the input of a plan.

    ``files`` gives the table's; where they do not show what the rows take, a sample does.
    """
    profile = profiled(df, ticket)
    sample = None
    if profile.incoming and sizing.policy != "hudi":
        measured = files([rows.partition for rows in profile.incoming])
        sample = None if has_estimate(profile.plain_bytes, measured) else sampled(df, ticket, profile)
    return profile, WorkloadProfile(incoming=profile.incoming, sample=sample)


def has_estimate(plain_bytes: int, files: Iterable[DataFile]) -> bool:
    """Return whether files of the table show what these bytes of rows take.

    Files that are all small are less significant, however many they are, but enough where no more is added than they
    contain.
    """
    measured = [file for file in files if file.plain_bytes]
    enough = any(file.bytes >= SIGNIFICANT_BYTES for file in measured)
    return enough or sum(file.plain_bytes for file in measured) >= plain_bytes
