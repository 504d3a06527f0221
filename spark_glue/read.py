"""Read a table as a native Spark scan of exactly its snapshot's files."""

import os
import re
from typing import Any
from urllib.parse import unquote

from anyio.from_thread import start_blocking_portal
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tallymark.engine.writes.snapshot import Snapshot
from tallymark.engine.writes.table import open_table
from tallymark.spark_glue.schema import spark_schema

_OUTPUT = 1
"""Where a LogicalRelation keeps its attributes."""


def read(spark: SparkSession, url: str | os.PathLike[str]) -> DataFrame:
    """The table at a URL, as of now: the committed files and no others, in the schema that was written.

    No directory is listed, and partition values come from the files, so that ``01`` stays ``01``. If the files are
    replaced by a later overwrite before the scan has read them, the scan fails; it never leaves rows out.

    Raises:
        UnsupportedTable: no table is there.
    """
    with start_blocking_portal("trio") as portal:
        snapshot = portal.call(open_table(url).snapshot)
    schema = spark_schema(snapshot.schema)
    if not snapshot.files:
        return spark.createDataFrame([], schema)
    scan = spark.read.schema(schema).parquet(*_patterns(snapshot))
    return _as_written(spark, scan, schema)


def _patterns(snapshot: Snapshot) -> list[str]:
    """The files as Spark takes paths: patterns, each of which matches one file only.

    Its option not to see patterns in paths (``__globPaths__``) reads every file once for each path that looks like one.
    """
    base = unquote(snapshot.url) if snapshot.url.startswith("file:") else snapshot.url
    return [re.sub(r"([\\*?\[\]{}])", r"\\\1", f"{base}/{file.path}") for file in snapshot.files]


def _as_written(spark: SparkSession, scan: DataFrame, schema: StructType) -> DataFrame:
    """The same scan with the nullability that was written: Spark takes every column of a file for nullable.

    Spark has no call for this, so the scan's own attributes are told; it stays the native scan that it was.
    """
    if scan.schema == schema:
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
    parts[_OUTPUT] = jvm.scala.jdk.javaapi.CollectionConverters.asScala(output).toSeq()
    plan = relation.copy(*parts)
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)
