"""Delete by predicate with Spark: its tasks look the rows up, and rewrite the files that have some of them."""

import functools
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from anyio.from_thread import BlockingPortal, start_blocking_portal
from pyspark import TaskContext
from pyspark.sql import SparkSession

from tallymark.backends.options import StorageOptions
from tallymark.engine.jobs.request import check_where
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.settings import (
    MarkerKind,
    MarkerSettings,
    ServiceSettings,
    SharedServiceSettings,
    SizingSettings,
    TaskSettings,
)
from tallymark.engine.sizing.task_plan import decode_task_plan
from tallymark.engine.table import open_table
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.upsert.locate import Lookup, hit_counts, locate_task
from tallymark.engine.upsert.routing import deletes_in
from tallymark.spark_glue.bootstrap import begun
from tallymark.spark_glue.driver import service_settings
from tallymark.spark_glue.failure import own_errors
from tallymark.spark_glue.progress import shown_progress
from tallymark.spark_glue.running import lost_with_tasks, tagged
from tallymark.spark_glue.session import is_connected, marker_settings
from tallymark.spark_glue.sizing import tasks_for
from tallymark.spark_glue.stage import run_tasks, write_partition
from tallymark.spark_glue.storage_options import storage_options
from tallymark.spark_glue.upsert.attempts import ATTEMPTS, check_attempts, retried
from tallymark.spark_glue.upsert.run import lookup_tasks
from tallymark.spark_glue.written import Written


def delete(
    spark: SparkSession,
    url: str | os.PathLike[str],
    *,
    where: str,
    txn: str | None = None,
    only_partitions: Mapping[str, object] | Sequence[Mapping[str, object]] | None = None,
    purge: bool = False,
    markers: MarkerKind | MarkerSettings | None = None,
    tasks: TaskSettings | None = None,
    service: ServiceSettings | SharedServiceSettings | None = None,
    options: StorageOptions | None = None,
    progress: bool | None = None,
    attempts: int = ATTEMPTS,
) -> WriteResult:
    """Delete the rows of the table at a URL that match a predicate, such as ``"user_id = 7"``, and commit.

    As ``Table.delete``, with Spark's tasks: files that cannot have such rows are not read, those of which all rows
    match are removed, and only those with rows of both kinds are rewritten. The grammar is a part of Spark's SQL
    (docs/upserting.md); rows for which the predicate is null stay. ``purge`` also deletes older versions of a table
    with ``readers="table"``, which have the rows: the result's ``pending`` states what remains of them. After a
    conflict the whole job runs again, at most ``attempts`` times in all. The other keywords are those of ``write``.

    Raises:
        InvalidRequest: ``where`` does not fit the table, rows outside of ``only_partitions`` match, or the txn was
            committed by a write that was declared differently. Nothing was changed.
        ConflictError: another write has replaced a file with such rows. Rows that others add in the meantime stay.
        UnsupportedTable: there is no table.
        RolledBack, TableReplaced, JobFailed, CommitUnknown, BackendError: as ``write``.
    """
    check_where(where)
    check_attempts(attempts)
    table = open_table(url, options=storage_options(spark, url, options))
    served_by = service or service_settings(spark)
    with start_blocking_portal("trio") as portal:

        def run() -> WriteResult:
            write_job = table.write(
                mode="delete",
                where=where,
                txn=txn,
                only_partitions=only_partitions,
                markers=marker_settings(spark, markers, served_by),
                tasks=tasks,
                service=served_by,
            )
            tag = f"tallymark-delete-{secrets.token_hex(8)}"
            wanted = False if is_connected(spark) else progress
            with portal.wrap_async_context_manager(lost_with_tasks(write_job, spark, tag)) as job:
                if job.committed is not None:
                    return job.committed
                with tagged(spark, tag), shown_progress(spark, job, wanted=wanted) as written:
                    reports = _rewritten(spark, job, portal, written)
                portal.call(job.commit, reports)
            return job.result

        result = retried(run, attempts)
        return portal.call(table.purged, result) if purge else result


def _rewritten(spark: SparkSession, job: WriteJob, portal: BlockingPortal, written: Written | None) -> list[TaskReport]:
    """Look the rows up, and write the files that keep some of theirs. Return the reports of the winning attempts."""
    counts = _counted(spark, job.ticket, portal.call(job.look_up))
    plan = portal.call(job.size, portal.call(job.profile, counts))
    planned = tasks_for(plan, job.ticket, SizingSettings())
    if not planned:
        return []
    each = spark.range(0, len(planned), 1, len(planned))  # a Spark partition per task
    return run_tasks(each, job.ticket, planned=planned, written=written, task=rewrite_partition)


def _counted(spark: SparkSession, ticket: WriteTicket, lookups: Sequence[Lookup]) -> dict[str, int]:
    """Return the number of rows that match in each file, by its path."""
    if not lookups:
        return {}
    task = begun(functools.partial(count_partition, replace(ticket, service=None)))
    with own_errors(spark):
        found = lookup_tasks(spark, lookups).mapInArrow(task, "path string, matches long").collect()
    return {row.path: row.matches for row in found}


def count_partition(ticket: WriteTicket, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the task: lookups in, the number of matches in each file out."""
    for batch in batches:
        lookups: list[Any] = batch.column(0).to_pylist()
        for lookup in lookups:
            found = hit_counts(locate_task(ticket, Lookup.decode(lookup)))
            yield pa.RecordBatch.from_pydict({"path": [*found], "matches": pa.array(found.values(), pa.int64())})


def rewrite_partition(
    ticket: WriteTicket, batches: Iterable[pa.RecordBatch], *, planned: Sequence[bytes], written: Written | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the task: the files of its plan, without the rows that match, and one row with its report out."""
    context = TaskContext.get()
    assert context is not None, "runs on an executor"
    changes = deletes_in(ticket, decode_task_plan(planned[context.partitionId()]))
    yield from write_partition(ticket, changes, planned=planned, written=written)
