"""Four readers of one table; three of them have never heard of Tallymark."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from hudi import HudiReadOptions, HudiTableBuilder
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import tallymark
from demo.checksum import Checksum, of_arrow, sql_figures


def spark_directory(spark: SparkSession, table: Path, schema: pa.Schema) -> Checksum:
    """Spark's own Parquet reader on the plain folder."""
    return _of_spark(spark.read.parquet(str(table)), schema)


def tallymark_read(spark: SparkSession, table: Path, schema: pa.Schema) -> Checksum:
    """The committed snapshot, as Spark reads it."""
    return _of_spark(tallymark.read(spark, str(table)), schema)


def duckdb_directory(table: Path, schema: pa.Schema) -> Checksum:
    """DuckDB on the plain folder."""
    figures = ", ".join(sql_figures(schema, seconds="epoch"))
    query = f"select month, {figures} from read_parquet(?) group by month"
    with duckdb.connect() as connection:
        return _of_rows(connection.execute(query, [f"{table}/**/*.parquet"]).fetchall())


def hudi_table(table: Path, schema: pa.Schema) -> Checksum:
    """hudi-rs on the table's Hudi timeline, which it trusts, and no listing."""
    return of_arrow(pa.Table.from_batches(_hudi_batches(table)).cast(schema))


def hudi_count(table: Path) -> int:
    return sum(batch.num_rows for batch in _hudi_batches(table))


def duckdb_count(table: Path) -> int:
    with duckdb.connect() as connection:
        found = connection.execute("select count(*) from read_parquet(?)", [f"{table}/**/*.parquet"]).fetchone()
    assert found is not None
    return int(found[0])


def _hudi_batches(table: Path) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = HudiTableBuilder.from_base_uri(str(table)).build().read(HudiReadOptions())
    return batches


def _of_spark(rows: DataFrame, schema: pa.Schema) -> Checksum:
    figures = [F.expr(figure) for figure in sql_figures(schema, seconds="unix_timestamp")]
    return _of_rows(rows.groupBy("month").agg(*figures).collect())


def _of_rows(rows: Iterable[Iterable[Any]]) -> Checksum:
    months = sorted(tuple(int(figure) for figure in row) for row in rows)
    return Checksum({month: tuple(figures) for month, *figures in months})
