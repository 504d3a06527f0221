"""Reads of a table: a native Spark scan of exactly its snapshot's files."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from anyio.from_thread import start_blocking_portal
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tallymark.backends.options import StorageOptions
from tallymark.engine.inspection.as_of import AsOf
from tallymark.engine.inspection.snapshot import Snapshot
from tallymark.engine.table import open_table
from tallymark.spark_glue.schema import spark_schema
from tallymark.spark_glue.session import is_connected
from tallymark.spark_glue.storage_options import native_url, storage_options
from tallymark.spark_glue.versions import dataframe_of, scala_sequence

_OPTIONS = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}
"""Days are those of the calendar of today, also before 1582. Spark 3.5 asks where its own writer does not say so."""

_OUTPUT = 1
"""Where a LogicalRelation keeps its attributes."""


def read(
    spark: SparkSession,
    url: str | os.PathLike[str],
    *,
    as_of: AsOf | None = None,
    options: StorageOptions | None = None,
) -> DataFrame:
    """Return the table at a URL, as it is now: the committed files and no others, in the schema that was written.

    No directory is listed, and partition values come from the files, so that ``01`` stays ``01``. If the files are
    replaced by a later overwrite and deleted before the scan has read them, the scan fails; it never leaves rows out.
    With ``readers="table"`` they stay for ``retain_hours``.

    ``as_of`` reads the table as it was: a position of its log, an instant as ``tallymark timeline`` prints it, or a
    time with its zone (datetime or ISO text), which means the newest commit that was decided by then.

    ``options`` say how the list of files is reached; left out, the session's Hadoop settings say it, as in ``write``.
    The files themselves Spark reads by those settings and by its own connectors: S3 needs ``hadoop-aws``.

    Over Spark Connect this process has to reach the storage, too, and every column is nullable.

    Raises:
        UnsupportedTable: no table is there.
        InvalidRequest: ``as_of`` names nothing that was, or files of it are no longer retained.
        MissingExtra: Spark lacks the connector to this storage.
    """
    table = open_table(url, options=storage_options(spark, url, options))
    with start_blocking_portal("trio") as portal:
        snapshot = portal.call(table.snapshot, as_of)
    return _scan(spark, snapshot)


@contextmanager
def reading(
    spark: SparkSession,
    url: str | os.PathLike[str],
    *,
    as_of: AsOf | None = None,
    options: StorageOptions | None = None,
) -> Iterator[DataFrame]:
    """As ``read``, and the files of the table at that position stay for as long as the block lasts.

    For scans that may take longer than the table's ``retain_hours``: a lease holds them, renewed by a thread of this
    process, and no clean deletes them until then. Computations on the DataFrame after the block have no such right.
    If this process dies the lease counts no more: at once for others on this machine, two minutes later elsewhere.

        with tallymark.reading(spark, url) as flights:
            flights.groupBy("month").count().write.parquet(target)

    Raises:
        InvalidRequest: the table was made with ``readers="directory"``, which keeps no replaced files, or as ``read``.
        UnsupportedTable, MissingExtra: as ``read``.
        TryAgain: storage gives no clear outcome of a clean that may delete files of that position.
    """
    table = open_table(url, options=storage_options(spark, url, options))
    with (
        start_blocking_portal("trio") as portal,
        portal.wrap_async_context_manager(table.reading(as_of)) as snapshot,
    ):
        yield _scan(spark, snapshot)


def _scan(spark: SparkSession, snapshot: Snapshot) -> DataFrame:
    schema = spark_schema(snapshot.schema)
    if not snapshot.files:
        return spark.createDataFrame([], schema)
    scan = spark.read.options(**_OPTIONS).schema(schema).parquet(*_patterns(snapshot, native_url(spark, snapshot.url)))
    return _as_written(spark, scan, schema)


def _patterns(snapshot: Snapshot, url: str) -> list[str]:
    """Return the files as Spark takes paths: patterns, each of which matches one file only.

    Its option not to see patterns in paths (``__globPaths__``) reads every file once for each path that looks like one.
    """
    base = unquote(url) if url.startswith("file:") else url
    return [re.sub(r"([\\*?\[\]{}])", r"\\\1", f"{base}/{file.path}") for file in snapshot.files]


def _as_written(spark: SparkSession, scan: DataFrame, schema: StructType) -> DataFrame:
    """Return the same scan with the nullability that was written: Spark takes every column of a file for nullable.

    Spark has no call for this, so the scan's own attributes are set; it stays the native scan that it was.
    """
    if scan.schema == schema or is_connected(spark):  # whose plans lie on the server: there columns stay nullable
        return scan
    jvm: Any = spark.sparkContext._jvm
    relation = scan._jdf.queryExecution().analyzed()
    written = jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())
    output = jvm.java.util.ArrayList()
    for index in range(len(schema)):
        field = written.apply(index)
        attribute = relation.output().apply(index)
        output.add(attribute.withDataType(field.dataType()).withNullability(field.nullable()))
    parts = [relation.productElement(index) for index in range(relation.productArity())]
    parts[_OUTPUT] = scala_sequence(output, spark)
    return dataframe_of(relation.copy(*parts), spark)
