"""Run of an upsert or delete: its Spark jobs, and the steps of the engine's job between them."""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import accumulate

from anyio.from_thread import BlockingPortal
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.jobs.request import WriteRequest
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.profile import WorkloadProfile
from tallymark.engine.tasks.merge import NAMED_MAX, ROW
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.upsert.keys import KeyReport, key_of
from tallymark.engine.upsert.locate import FILE, GONE, Lookup, checked_count
from tallymark.spark_glue.bootstrap import begun
from tallymark.spark_glue.failure import own_errors
from tallymark.spark_glue.routing import Tasks
from tallymark.spark_glue.sizing import tasks_for
from tallymark.spark_glue.stage import run_tasks
from tallymark.spark_glue.task_key import task_key
from tallymark.spark_glue.upsert.hits import Hits, hit_types, is_single
from tallymark.spark_glue.upsert.routing import routed
from tallymark.spark_glue.upsert.rows import KeyedRows, spark_types
from tallymark.spark_glue.upsert.shares import KeyShares, SampledKey, planned_rows, sampled_keys, shares_of
from tallymark.spark_glue.upsert.stage import change_partition, hit_columns, key_partition, locate_partition
from tallymark.spark_glue.written import Written


def run_changes(
    df: DataFrame,
    job: WriteJob,
    portal: BlockingPortal,
    request: WriteRequest,
    sizing: SizingSettings,
    written: Written | None,
) -> list[TaskReport]:
    """Look the keys of all rows up, and write what changes. Return the reports of the winning attempts.

    Raises:
        InvalidRequest: a row does not fit the table, two rows of a key are of equal order, or keys are there and
            ``when_matched="fail"``.
        ConflictError: another writer has replaced a file that was looked up.
        JobFailed: Spark gave up.
    """
    rows, ticket = KeyedRows(df, job.ticket, request), job.ticket
    reports = _store_keys(rows)
    lookups = portal.call(job.look_up, reports)
    files = _paths(lookups)
    with _located(df.sparkSession, ticket, lookups) as hits:
        counts = _counted(hits, ticket, files)
        if hits is not None and request.when_matched == "fail":
            _check_absent(hits, ticket, counts)
        plan = portal.call(job.size, portal.call(job.profile, counts))
        tasks = tasks_for(plan, ticket, sizing)
        found = None if hits is None or not any(counts.values()) else _found(hits, ticket, files)
        shares = _shares(df.sparkSession, ticket, found, tasks, reports)
        changes = routed(rows, found, tasks, shares, keep=request.when_matched == "keep")
        return run_tasks(changes, ticket, planned=tasks, written=written, task=change_partition)


def change_profile(df: DataFrame, job: WriteJob, portal: BlockingPortal, request: WriteRequest) -> WorkloadProfile:
    """Return the input of the plan of an upsert or delete: its keys are looked up, and nothing else is done.

    Raises as ``run_changes``.
    """
    lookups = portal.call(job.look_up, _store_keys(KeyedRows(df, job.ticket, request)))
    with _located(df.sparkSession, job.ticket, lookups) as hits:
        return portal.call(job.profile, _counted(hits, job.ticket, _paths(lookups)))


def _paths(lookups: Iterable[Lookup]) -> list[str]:
    return [file.path for lookup in lookups for file in lookup.files]


def _found(hits: DataFrame, ticket: WriteTicket, files: Sequence[str]) -> Hits:
    with own_errors(hits.sparkSession):
        return Hits(hits, files, is_single(hits, ticket))


def _store_keys(rows: KeyedRows) -> list[KeyReport]:
    keys = rows.keys()
    task = begun(functools.partial(key_partition, replace(rows.ticket, service=None)))
    with own_errors(keys.sparkSession):
        found = keys.mapInArrow(task, "report binary").collect()
    return [KeyReport.decode(bytes(row.report)) for row in found]


@contextmanager
def _located(session: SparkSession, ticket: WriteTicket, lookups: Sequence[Lookup]) -> Iterator[DataFrame | None]:
    """Yield the hits of all lookups, stored by Spark for the block; None without lookups."""
    if not lookups:
        yield None
        return
    task = begun(functools.partial(locate_partition, replace(ticket, service=None)))
    hits = lookup_tasks(session, lookups).mapInArrow(task, hit_types(ticket)).persist()
    try:
        yield hits
    finally:
        with suppress(Exception):  # a stopped session has none left, and has its own error
            hits.unpersist()


def lookup_tasks(session: SparkSession, lookups: Sequence[Lookup]) -> DataFrame:
    """Return the lookups with the numbers of their first files as rows, each in a Spark partition."""
    ends = accumulate(len(lookup.files) for lookup in lookups)
    sent = [
        (lookup.encode(), end - len(lookup.files), task_key(number))
        for number, (lookup, end) in enumerate(zip(lookups, ends, strict=True))
    ]
    tasks = session.createDataFrame(sent, "lookup binary, first int, task_key int")
    return tasks.repartition(len(sent), "task_key").select("lookup", "first")


def _counted(hits: DataFrame | None, ticket: WriteTicket, files: Sequence[str]) -> dict[str, int]:
    """Return the number of hits in each file that was looked up, ``GONE`` for a missing one."""
    if hits is None:
        return {}
    hit = hit_columns(ticket)
    is_hit = f.col(hit[ROW]) >= 0
    end = f.when(~is_hit, f.col(hit[ROW]))
    counted = hits.groupBy(f.col(hit[FILE]).alias("file")).agg(
        f.count_if(is_hit).alias("rows"), f.count(end).alias("ends"), f.max(end).alias("end")
    )
    with own_errors(hits.sparkSession):
        found = [(files[row.file], row) for row in counted.collect()]
    return {path: checked_count(path, row.rows, [row.end] * row.ends) for path, row in found}


def _check_absent(hits: DataFrame, ticket: WriteTicket, counts: Mapping[str, int]) -> None:
    """Raise InvalidRequest for keys that the table has."""
    found = sum(rows for rows in counts.values() if rows != GONE)
    if not found:
        return
    hit, names = hit_columns(ticket), key_of(ticket).record_key
    with own_errors(hits.sparkSession):
        some = hits.where(f.col(hit[ROW]) >= 0).select(*(hit[name] for name in names)).limit(NAMED_MAX).collect()
    keys = "; ".join(", ".join(f"{name}={value!r}" for name, value in zip(names, row, strict=True)) for row in some)
    raise InvalidRequest(
        f"{found:,} rows of the table have a key of df, such as {keys}, and when_matched='fail': leave those rows out, "
        "or say 'update' or 'keep'"
    )


def _shares(
    session: SparkSession, ticket: WriteTicket, hits: Hits | None, tasks: Tasks, reports: Sequence[KeyReport]
) -> dict[str, KeyShares]:
    """Return the tasks of new keys by partition. Where several share a partition, they are separated by those of the
    sampled keys that are new in it.
    """
    planned = planned_rows(tasks)
    divided = [path for path, takers in planned.items() if len(takers) > 1]
    sample = sampled_keys(reports, divided) if divided else []
    if sample and hits is not None:
        sample = _new_keys(session, ticket, hits, sample)
    return shares_of(planned, sample)


def _new_keys(session: SparkSession, ticket: WriteTicket, hits: Hits, sample: Sequence[SampledKey]) -> list[SampledKey]:
    """Return the keys that the table does not have in their partition."""
    hit, names = hit_columns(ticket), key_of(ticket).record_key
    keys = [f"key{place}" for place in range(len(names))]
    types = spark_types(ticket.schema.field(name) for name in names)
    fields = [StructField("number", LongType()), StructField("partition", IntegerType())]
    fields += [StructField(*column) for column in zip(keys, types, strict=True)]
    partitions = {path: number for number, path in enumerate({each.partition: None for each in sample})}
    of_file = {path: partitions[folder] for path in hits.files if (folder := path.rpartition("/")[0]) in partitions}
    rows = [(number, partitions[each.partition], *each.key) for number, each in enumerate(sample)]
    there = hits.found(ticket).select(
        hits.of_file(ticket, of_file).alias("partition"),
        *(f.col(hit[name]).alias(key) for name, key in zip(names, keys, strict=True)),
    )
    new = session.createDataFrame(rows, StructType(fields)).join(there, ["partition", *keys], "left_anti")
    with own_errors(session):
        return [sample[row.number] for row in new.select("number").collect()]
