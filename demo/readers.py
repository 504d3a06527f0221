"""Four readers of one table, three of which do not use Tallymark, and the checksum that compares what they read."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from hudi import HudiReadOptions, HudiTableBuilder
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import tallymark

Figures = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Checksum:
    """For each month: rows, then for each column the sum of its values and the count of its nulls.

    Text counts by its length, times by the seconds since 1970.
    """

    months: dict[int, Figures]

    @property
    def rows(self) -> int:
        return sum(figures[0] for figures in self.months.values())

    def total(self, position: int) -> int:
        return sum(figures[position] for figures in self.months.values())

    @property
    def digest(self) -> str:
        """Return a hash of all figures."""
        return f"{zlib.crc32(repr(sorted(self.months.items())).encode()):08x}"


def sql_figures(schema: pa.Schema, *, seconds: str) -> list[str]:
    """Return the figures of a month as SQL, ``seconds`` being the dialect's function from a time to seconds
    since 1970.
    """
    figures = ["count(*)"]
    for field in schema:
        if pa.types.is_timestamp(field.type):
            value = f"cast({seconds}({field.name}) as bigint)"
        elif pa.types.is_string(field.type):
            value = f"length({field.name})"
        else:
            value = field.name
        figures += [f"sum({value})", f"count(*) - count({field.name})"]
    return figures


def of_arrow(table: pa.Table) -> Checksum:
    """Return the figures of rows in memory."""
    values: list[Any] = table["month"].to_pylist()
    return Checksum({month: _figures(table.filter(pc.field("month") == month)) for month in sorted(set(values))})


def _figures(rows: pa.Table) -> Figures:
    return reduce(lambda figures, column: (*figures, *_of_column(column)), rows.columns, (rows.num_rows,))


def _of_column(column: "pa.ChunkedArray[Any]") -> Figures:
    if pa.types.is_timestamp(column.type):
        values = column.cast(pa.timestamp("s", "UTC")).cast(pa.int64())
    elif pa.types.is_string(column.type):
        values = pc.utf8_length(column)
    else:
        values = column
    return int(pc.sum(values).as_py()), column.null_count


def spark_directory(spark: SparkSession, table: Path, schema: pa.Schema) -> Checksum:
    """Read the plain folder with Spark's own Parquet reader."""
    return _of_spark(spark.read.parquet(str(table)), schema)


def tallymark_read(spark: SparkSession, table: Path, schema: pa.Schema) -> Checksum:
    """Read the committed snapshot with Spark."""
    return _of_spark(tallymark.read(spark, str(table)), schema)


def duckdb_directory(table: Path, schema: pa.Schema) -> Checksum:
    """Read the plain folder with DuckDB."""
    figures = ", ".join(sql_figures(schema, seconds="epoch"))
    query = f"select month, {figures} from read_parquet(?) group by month"
    with duckdb.connect() as connection:
        return _of_rows(connection.execute(query, [f"{table}/**/*.parquet"]).fetchall())


def hudi_table(table: Path, schema: pa.Schema) -> Checksum:
    """Read the table's Hudi timeline with hudi-rs, which trusts it and lists nothing."""
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
