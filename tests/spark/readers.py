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


def given(reader: str, spark: SparkSession, table: Path) -> Fetch:
    """The first step; what is returned is the second."""
    fetch = READERS[reader](spark, table)
    return lambda: _rows(fetch())


def _of(library: str) -> Any:
    return pytest.importorskip(library)


READERS: dict[str, Callable[[SparkSession, Path], Callable[[], Any]]] = {
    "tallymark.read": lambda spark, table: tallymark.read(spark, str(table)).toArrow,
    "hudi-rs": lambda _, table: HudiTable("file://" + quote(str(table))).read,
    "Spark": lambda spark, table: spark.read.parquet(str(table)).toArrow,
    "DuckDB": lambda _, table: duckdb.connect().sql(DUCKDB, params=[f"{table}/**/*.parquet"]).to_arrow_table,
    "polars": lambda _, table: _of("polars").scan_parquet(f"{table}/**/*.parquet").collect,
    "pyarrow": lambda _, table: ds.dataset(str(table), format="parquet", partitioning=None).to_table,
    "Daft": lambda _, table: _of("daft").read_parquet(f"{table}/**/*.parquet").to_arrow,
    "Daft's read_hudi": lambda _, table: _of("daft").read_hudi(str(table)).to_arrow,
}

DUCKDB = "SELECT * FROM read_parquet($1, hive_partitioning = true)"


def _rows(found: Any) -> list[Row]:
    """Of a table of Arrow, of its batches, or of a frame of polars."""
    if isinstance(found, list):
        found = pa.Table.from_batches(found)
    if not isinstance(found, pa.Table):
        found = found.to_arrow()
    columns = [found.column(field.name).cast(field.type).to_pylist() for field in SCHEMA]
    return list(zip(*columns, strict=True))
