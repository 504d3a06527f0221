"""Readers of the table, most of which do not use Tallymark. All return Arrow rows."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
from hudi import HudiReadOptions, HudiTableBuilder
from pyspark.sql import SparkSession

import tallymark


def duckdb_rows(table: Path) -> duckdb.DuckDBPyRelation:
    """Read the plain folder."""
    return duckdb.read_parquet(f"{table}/**/*.parquet", hive_partitioning=False)


def hudi_rows(table: Path) -> pa.Table:
    """Read the table's Hudi timeline with hudi-rs, which lists nothing."""
    return pa.Table.from_batches(HudiTableBuilder.from_base_uri(str(table)).build().read(HudiReadOptions()))


READERS: dict[str, Callable[[SparkSession, Path], pa.Table]] = {
    "Spark, spark.read.parquet": lambda spark, table: spark.read.parquet(str(table)).toArrow(),
    "DuckDB, read_parquet": lambda _, table: duckdb_rows(table).to_arrow_table(),
    "hudi-rs": lambda _, table: hudi_rows(table),
    "tallymark.read": lambda spark, table: tallymark.read(spark, str(table)).toArrow(),
}


def differences(found: pa.Table, wanted: pa.Table) -> tuple[int, int]:
    """Return how many wanted rows are missing, and how many rows were found that are not wanted.

    Rows are equal if all their columns are. A row that occurs twice is wanted twice.
    """
    found = found.select(wanted.schema.names).cast(wanted.schema)
    with duckdb.connect() as connection:
        connection.register("found", found).register("wanted", wanted)
        return (_count(connection, "wanted", "found"), _count(connection, "found", "wanted"))


def _count(connection: duckdb.DuckDBPyConnection, left: str, right: str) -> int:
    return len(connection.sql(f"from {left} except all from {right}"))
