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
"""Dates are of the proleptic Gregorian calendar, also before 1582. Spark 3.5 requires it where files do not
state it.
"""

_OUTPUT = 1
"""Field of a LogicalRelation that contains its attributes."""


def read(
    spark: SparkSession,
    url: str | os.PathLike[str],
    *,
    as_of: AsOf | None = None,
    options: StorageOptions | None = None,
) -> DataFrame:
    """Return the table at a URL as of now: exactly the committed files, in the schema that was written.

    No directory is listed, and partition values are read from the files, so that ``01`` stays ``01``. If the files are
    replaced by a later overwrite and deleted before the scan has read them, the scan fails; it never leaves rows out.
    With ``readers="table"`` they remain for ``retain_hours``.

    ``as_of`` reads an earlier state: a position of the log, an instant as ``tallymark timeline`` prints it, or a time
    with its zone (datetime or ISO text), which means the newest commit that was decided by then.

    ``options`` determine how the list of files is read; by default the session's Hadoop settings do, as in ``write``.
    Spark reads the files themselves by those settings and with its own connectors: S3 needs ``hadoop-aws``. Over Spark
    Connect this process has to reach the storage, too, and every column is nullable.

    Raises:
        UnsupportedTable: there is no table.
        InvalidRequest: ``as_of`` names no state of the table, or files of it are no longer retained.
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
    """Yield the same as ``read``; the files of the table at that position remain for the duration of the block.

    For scans that may take longer than the table's ``retain_hours``: a lease protects the files, renewed by a thread of
    this process, and no clean deletes them until then. Computations on the DataFrame after the block have no such
    protection. If this process dies the lease no longer counts: at once for processes on this machine, two minutes
    later elsewhere.

        with tallymark.reading(spark, url) as flights:
            flights.groupBy("month").count().write.parquet(target)

    Raises:
        InvalidRequest: the table was created with ``readers="directory"``, which keeps no replaced files, or as
            ``read``.
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
    """Return the files as the patterns that Spark expects, each of which matches one file only.

    Its option to read paths literally (``__globPaths__``) reads every file once per path that looks like a pattern.
    """
    base = unquote(url) if url.startswith("file:") else url
    return [re.sub(r"([\\*?\[\]{}])", r"\\\1", f"{base}/{file.path}") for file in snapshot.files]


def _as_written(spark: SparkSession, scan: DataFrame, schema: StructType) -> DataFrame:
    """Return the same scan with the nullability that was written: Spark makes every column of a file nullable.

    Spark has no call for this, so the scan's own attributes are set; it remains a native scan.
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
