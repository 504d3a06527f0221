"""Writes of a DataFrame: one commit per call."""

import os
import secrets
from collections.abc import Awaitable
from typing import Unpack

import pyarrow as pa
from anyio.from_thread import BlockingPortal, start_blocking_portal
from pyspark.sql import DataFrame, SparkSession

from tallymark.backends.options import StorageOptions
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.jobs.request import Mode, PartitionOverwrite, WriteOptions, WriteRequest
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.planning.input_rows import Incoming
from tallymark.engine.planning.write_plan import WritePlan
from tallymark.engine.settings import (
    MarkerKind,
    MarkerSettings,
    ServiceSettings,
    SharedServiceSettings,
    SizingSettings,
    TaskSettings,
    ViewSettings,
)
from tallymark.engine.table import Table, open_table
from tallymark.spark_glue.catalog import caught_up
from tallymark.spark_glue.catalog_table import CatalogTable, find_catalog_table, refuse_catalog
from tallymark.spark_glue.driver import service_settings
from tallymark.spark_glue.plan import planned
from tallymark.spark_glue.progress import shown_progress
from tallymark.spark_glue.running import lost_with_tasks, tagged
from tallymark.spark_glue.schema import arrow_schema, spark_schema
from tallymark.spark_glue.session import is_connected, marker_settings, refuse_ended
from tallymark.spark_glue.sizing import DEFAULT_SIZING, sized
from tallymark.spark_glue.stage import run_tasks
from tallymark.spark_glue.storage_options import storage_options
from tallymark.spark_glue.upsert.attempts import ATTEMPTS, check_attempts, retried
from tallymark.spark_glue.upsert.rows import check_changes, stored_columns
from tallymark.spark_glue.upsert.run import change_profile, run_changes


def write(
    df: DataFrame,
    url: str | os.PathLike[str],
    *,
    mode: Mode,
    catalog_table: str | None = None,
    markers: MarkerKind | MarkerSettings | None = None,
    tasks: TaskSettings | None = None,
    sizing: SizingSettings | None = DEFAULT_SIZING,
    service: ServiceSettings | SharedServiceSettings | None = None,
    views: ViewSettings | None = None,
    options: StorageOptions | None = None,
    progress: bool | None = None,
    attempts: int = ATTEMPTS,
    **request: Unpack[WriteOptions],
) -> WriteResult:
    """Write a DataFrame to the table at a URL and commit it; on return every reader sees it whole.

    ``mode="append"`` adds; ``mode="overwrite"`` replaces the table, or with ``partition_overwrite="dynamic"`` those
    partitions that the DataFrame has rows for (a table without partitions is replaced whole, as in Spark).
    ``partition_overwrite`` defaults to the session's ``spark.sql.sources.partitionOverwriteMode``.

    ``mode="upsert"`` replaces the rows whose key the table has, and adds the others; ``mode="delete"`` deletes the rows
    of these keys, for which ``df`` needs no other columns, and ignores ``order_by`` (docs/upserting.md). The write that
    creates the table fixes ``record_key``, ``order_by`` (of two rows of one key the greater wins; of equal ones, that
    of ``df``) and ``unique_in``: ``"partition"``, or ``"table"``, where a row whose partition changes moves. In ``df``,
    rows of one key and equal order have to be equal. ``when_matched="keep"`` leaves out rows whose key the table has,
    ``"fail"`` refuses them. ``delete_column`` is a boolean column of ``df``, which is not stored, of rows that delete
    their key. ``df`` is computed twice, and its files are sized, by default as by ``SizingSettings()``. After a
    conflict the whole job runs again, at most ``attempts`` times in all.

    ``partition={"year": 2013}`` is Spark's ``INSERT ... PARTITION (year = 2013)``: values of the first partition
    columns, which the DataFrame may lack; an overwrite replaces that part of the table alone. ``only_partitions``, one
    such mapping or several, refuses a write that would touch anything else. ``base`` is the position of the snapshot
    that the DataFrame was made from: an overwrite keeps files appended since, and conflicts if any of its files was
    replaced.

    ``txn="name:batch"`` names this write permanently: run again after it was committed, by a retry or a scheduler, it
    runs no Spark job and returns the first result, with ``is_rerun`` set; two concurrent runs commit once
    (docs/rerunning.md). ``readers="table"``, given by the write that creates the table, keeps replaced files for
    ``retain_hours`` (24), for running queries and ``as_of``; the table is then read by ``tallymark.read`` or a Hudi
    reader, and not as a directory. ``sizing=SizingSettings()`` makes files of the right size at this commit, and lets
    an append fill small ones: Spark counts the rows by partition first, so ``df`` is computed twice, and shuffles them
    once (docs/sizing.md). ``catalog_table`` names a table of Spark's catalog that represents this one: after the commit
    new partitions are added to it and emptied ones dropped, and it is refreshed; where that fails, the commit is valid
    and the result's ``pending`` has the reason. ``markers="direct"`` does without the driver's service, as is always
    the case over Spark Connect, whose tasks cannot reach this process. ``views`` determines how the job caches the
    table's files (docs/views.md). ``options`` determine how storage is reached; by default the session's Hadoop
    settings do (``fs.s3a.endpoint``, ``dfs.*`` and others), except for keys, which are never read from there.
    ``progress`` shows tasks, files, rows, bytes and markers while tasks run, on stderr or in a notebook's cell; by
    default only on a terminal and in a notebook.

    If anything fails, nothing of the write is left, neither visible rows nor files; where storage does not answer at
    the end, the next write removes them.

    Raises:
        InvalidRequest: the call, the schema or a row does not fit the table (UnsupportedTable: it is not a table of
            ours),
            the catalog table does not represent it, or the txn was committed by a call that declared another write.
        ConflictError: another write of the same partitions, or of the same keys, committed first.
        RolledBack: another writer treated this one as dead. Raised as soon as it is known; Spark's tasks are cancelled.
        TableReplaced: the table was removed, created again or restored while it was written.
        JobFailed: Spark gave up on a task; the message is the task's error.
        CommitUnknown: storage did not answer while the commit was being decided; the error names the instant.
        BackendError: storage refuses (NotPermitted, InvalidPath) or does not answer (Unavailable).
    """
    _check_attempts(attempts, mode)
    session, table, schema = _opened(df, url, request, options, views)
    with start_blocking_portal("trio") as portal:
        changes = _checked_changes(portal, df, table, mode, request) if mode in ("upsert", "delete") else None
        target = _catalog_target(portal, session, table, schema, catalog_table, request)
        served_by = service or service_settings(session)

        def run() -> WriteJob:
            write_job = table.write(
                schema=schema,
                mode=mode,
                markers=marker_settings(session, markers, served_by),
                tasks=tasks,
                sizing=sizing,
                service=served_by,
                **request,
            )
            tag = f"tallymark-write-{secrets.token_hex(8)}"
            with portal.wrap_async_context_manager(lost_with_tasks(write_job, session, tag)) as job:
                if job.committed is not None:
                    return job
                with tagged(session, tag), shown_progress(session, job, wanted=_shows(session, progress)) as written:
                    if changes is not None:
                        reports = run_changes(df, job, portal, changes, sizing or SizingSettings(), written)
                    else:
                        rows, planned_files = sized(df, job, portal, sizing)
                        reports = run_tasks(rows, job.ticket, planned=planned_files, written=written)
                portal.call(job.commit, reports)
            return job

        job = retried(run, attempts if changes is not None else 1)
        # Replaced files are deleted by now: a refresh before that would let Spark list them once more.
        result = job.result
        return result if target is None else caught_up(session, target, result, lambda: portal.call(job.partitions))


def _check_attempts(attempts: int, mode: object) -> None:
    check_attempts(attempts)
    if attempts != ATTEMPTS and mode not in ("upsert", "delete"):
        raise InvalidRequest(
            f"attempts={attempts} is for mode='upsert' and 'delete', and this is {mode!r}, whose rows may depend on "
            "what another writer has changed; leave it out"
        )


def _checked_changes(
    portal: BlockingPortal, df: DataFrame, table: Table, mode: Mode, request: WriteOptions
) -> WriteRequest:
    """Return the request of an upsert or delete. Raises InvalidRequest where it does not fit the DataFrame."""
    changes = WriteRequest.of(mode, **request)
    if changes.where is not None:
        raise InvalidRequest(
            "where=... is for a delete without a DataFrame: call tallymark.delete(spark, url, where=...), or "
            "Table.plan_delete for a dry run"
        )
    check_changes(df.schema, changes, portal.call(table.properties))
    return changes


def plan(
    df: DataFrame,
    url: str | os.PathLike[str],
    *,
    mode: Mode,
    catalog_table: str | None = None,
    tasks: TaskSettings | None = None,
    sizing: SizingSettings | None = DEFAULT_SIZING,
    views: ViewSettings | None = None,
    options: StorageOptions | None = None,
    **request: Unpack[WriteOptions],
) -> WritePlan:
    """Return what ``write`` with the same keywords would do now, and change nothing (docs/planning.md).

    The rows are counted by one Spark job, by task and partition; with ``sizing`` perhaps another one encodes a sample.
    For an upsert or delete, Spark looks their keys up, in an instant that is rolled back.

    Raises what ``write`` raises before its tasks run. Rows that ``write`` would refuse by columns other than partition
    columns are not detected.
    """
    session, table, schema = _opened(df, url, request, options, views)

    def planned_for(incoming: Incoming) -> Awaitable[WritePlan]:
        return table.plan(schema=schema, mode=mode, sizing=sizing, incoming=incoming, **request)

    with start_blocking_portal("trio") as portal:
        _catalog_target(portal, session, table, schema, catalog_table, request)
        if mode in ("upsert", "delete"):
            changes, sizing = _checked_changes(portal, df, table, mode, request), sizing or SizingSettings()
            if portal.call(table.properties) is not None:
                write_job = table.write(
                    schema=schema, mode=mode, markers=MarkerSettings(kind="direct"), tasks=tasks, **request
                )
                with portal.wrap_async_context_manager(write_job) as job:
                    found = () if job.committed is not None else change_profile(df, job, portal, changes)
                return portal.call(planned_for, found)
            df = df.drop(*filter(None, [changes.delete_column]))  # all rows are new
        return planned(portal, df, table, planned_for, static=request.get("partition"), tasks=tasks, sizing=sizing)


def _opened(
    df: DataFrame,
    url: str | os.PathLike[str],
    request: WriteOptions,
    options: StorageOptions | None,
    views: ViewSettings | None,
) -> tuple[SparkSession, Table, pa.Schema]:
    """Return what every call needs, and complete ``request`` by the session's default."""
    _check(df, url)
    session = df.sparkSession
    if request.get("partition_overwrite") is None:
        request["partition_overwrite"] = _session_default(session)
    schema = arrow_schema(stored_columns(df.schema, request.get("delete_column")), request.get("partition"))
    return session, open_table(url, options=storage_options(session, url, options), views=views), schema


def _catalog_target(
    portal: BlockingPortal,
    session: SparkSession,
    table: Table,
    schema: pa.Schema,
    catalog_table: str | None,
    request: WriteOptions,
) -> CatalogTable | None:
    if catalog_table is None:
        return None
    found = portal.call(table.properties)
    columns = found.partition_by if found else tuple(request.get("partition_by", ()))
    whole = spark_schema(found.schema if found else schema)  # with static columns that df lacks
    refuse_catalog(catalog_table, found.readers if found else request.get("readers"))
    return find_catalog_table(session, catalog_table, table.url, whole, columns)


def _shows(session: SparkSession, progress: bool | None) -> bool | None:
    """Return whether progress is shown. Spark Connect shows its own, and does not report its tasks to this process."""
    return False if is_connected(session) else progress


def _check(df: DataFrame, url: object) -> None:
    """Raise InvalidRequest for what only the glue can detect; the table checks everything else."""
    if not isinstance(df, DataFrame):
        raise InvalidRequest(
            f"df is a {type(df).__module__}.{type(df).__name__}; give a pyspark.sql.DataFrame. Without Spark, "
            "Arrow batches are written by open_table and write_task"
        )
    refuse_ended(df.sparkSession)
    if df.isStreaming:
        raise InvalidRequest("df is a stream; write its batches from foreachBatch")
    if isinstance(url, str) and url.lower().startswith("memory:"):
        raise InvalidRequest(f"{url!r} lives in the driver, where executors cannot write; give storage that they share")


def _session_default(session: SparkSession) -> PartitionOverwrite:
    """Return the session's overwrite mode, "static" by default; Spark refuses other values itself."""
    said = session.conf.get("spark.sql.sources.partitionOverwriteMode", "static")
    return "dynamic" if said is not None and said.lower() == "dynamic" else "static"
