"""Readers of a table, each in two steps: what it does when it is given the table, and what when rows are asked for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hudi import HudiTable
from pyspark.sql import SparkSession

import tallymark
from tests.spark.frozen import SCHEMA, Row

Fetch = Callable[[], list[Row]]


def by_tallymark(spark: SparkSession, table: Path) -> Fetch:
    found = tallymark.read(spark, str(table))
    return lambda: _rows(found.toArrow())


def by_hudi_rs(_: SparkSession, table: Path) -> Fetch:
    found = HudiTable("file://" + quote(str(table)))
    return lambda: _rows(pa.Table.from_batches(found.read()))


def by_spark(spark: SparkSession, table: Path) -> Fetch:
    found = spark.read.parquet(str(table))
    return lambda: _rows(found.toArrow())


def by_duckdb(_: SparkSession, table: Path) -> Fetch:
    connection = duckdb.connect()
    found = connection.sql("SELECT * FROM read_parquet($1, hive_partitioning = true)", params=[f"{table}/**/*.parquet"])
    return lambda: _rows(found.to_arrow_table())


def by_pyarrow(_: SparkSession, table: Path) -> Fetch:
    found = ds.dataset(str(table), format="parquet", partitioning=None)
    return lambda: _rows(found.to_table())


def by_polars(_: SparkSession, table: Path) -> Fetch:
    polars = pytest.importorskip("polars")
    found = polars.scan_parquet(f"{table}/**/*.parquet")
    return lambda: _rows(found.collect().to_arrow())


def by_daft(_: SparkSession, table: Path) -> Fetch:
    daft = pytest.importorskip("daft")
    found = daft.read_parquet(f"{table}/**/*.parquet")
    return lambda: _rows(found.to_arrow())


def by_daft_hudi(_: SparkSession, table: Path) -> Fetch:
    daft = pytest.importorskip("daft")
    found = daft.read_hudi(str(table))
    return lambda: _rows(found.to_arrow())


READERS: dict[str, Callable[[SparkSession, Path], Fetch]] = {
    "tallymark.read": by_tallymark,
    "hudi-rs": by_hudi_rs,
    "Spark": by_spark,
    "DuckDB": by_duckdb,
    "polars": by_polars,
    "pyarrow": by_pyarrow,
    "Daft": by_daft,
    "Daft's read_hudi": by_daft_hudi,
}


def _rows(found: Any) -> list[Row]:
    columns = [found.column(field.name).cast(field.type).to_pylist() for field in SCHEMA]
    return list(zip(*columns, strict=True))
