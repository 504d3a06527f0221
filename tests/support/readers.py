"""A table's rows as four readers see them, of which three know nothing of this library."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pyarrow as pa
from hudi import HudiTable
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import StructType

import tallymark
from tallymark.spark_glue.schema import arrow_schema

Row = tuple[object, ...]


def assert_readers_agree(spark: SparkSession, path: Path, expected: DataFrame) -> int:
    """All four see exactly these rows, in the types of ``expected``. Returns how many they are."""
    return assert_agree(expected, {reader: read(spark, path) for reader, read in READERS.items()})


def assert_agree(expected: DataFrame, seen: Mapping[str, pa.Table]) -> int:
    """As above, of what each reader sees."""
    schema = nullable(expected)
    wanted = _sorted_rows(arrow_table(expected), schema)
    for reader, table in seen.items():
        found = _sorted_rows(table, schema)
        assert len(found) == len(wanted), f"{reader} sees {len(found)} rows, not {len(wanted)}"
        assert found == wanted, f"{reader} sees other values"
    return len(wanted)


def read_plainly(spark: SparkSession, path: Path) -> pa.Table:
    """Spark, on the directory, as anybody would: partition columns from the paths, types inferred."""
    return to_arrow(plainly(spark).parquet(spark_path(path)))


def plainly(spark: SparkSession) -> DataFrameReader:
    """Spark 3.5 wants to be told that days before 1582 are those of today's calendar; Spark 4 takes it for granted."""
    return spark.read.option("datetimeRebaseMode", "CORRECTED")


def read_by_duckdb(_: SparkSession, path: Path) -> pa.Table:
    """DuckDB, on the same directory, partition columns from the paths and their types left as text."""
    escaped = "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))
    with duckdb.connect() as connection:
        found: pa.Table = connection.sql(
            "SELECT * EXCLUDE (filename) FROM read_parquet("
            "$1, hive_partitioning = true, hive_types_autocast = false, filename = true)",
            params=[f"{escaped}/**/*.parquet"],
        ).to_arrow_table()
        return found


def read_by_hudi(_: SparkSession, path: Path) -> pa.Table:
    """hudi-rs, on the timeline."""
    return pa.Table.from_batches(HudiTable("file://" + quote(str(path))).read())


def read_by_tallymark(spark: SparkSession, path: Path) -> pa.Table:
    return arrow_table(tallymark.read(spark, str(path)))


READERS: dict[str, Callable[[SparkSession, Path], pa.Table]] = {
    "Spark": read_plainly,
    "DuckDB": read_by_duckdb,
    "hudi-rs": read_by_hudi,
    "tallymark": read_by_tallymark,
}


def spark_path(path: Path) -> str:
    """The directory as Spark's readers take it: they see a pattern in every path."""
    return "".join(f"\\{letter}" if letter in "*?[]{}\\" else letter for letter in str(path))


def nullable(df: DataFrame) -> pa.Schema:
    """The same columns and types, all of them nullable: what readers may well differ in."""
    return arrow_schema(_nullable(df))


def arrow_table(df: DataFrame) -> pa.Table:
    try:
        return to_arrow(df)
    except pa.ArrowInvalid:  # Spark's own stumbles over a null struct that has a required field
        return to_arrow(df.sparkSession.createDataFrame(df.collect(), _nullable(df)))


def to_arrow(df: DataFrame) -> pa.Table:
    """``DataFrame.toArrow``, which Spark 3.5 does not have yet."""
    if hasattr(df, "toArrow"):
        return df.toArrow()
    df_of_3_5: Any = df
    return pa.Table.from_batches(df_of_3_5._collect_as_arrow(), arrow_schema(df.schema))


def _nullable(df: DataFrame) -> StructType:
    return StructType.fromJson(json.loads(df._jdf.schema().asNullable().json()))


def _sorted_rows(table: pa.Table, schema: pa.Schema) -> Sequence[Row]:
    columns: list[Any] = [table.column(field.name).cast(field.type).to_pylist() for field in schema]
    return sorted(zip(*columns, strict=True), key=repr)
