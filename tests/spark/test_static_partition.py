"""Static partitions of DataFrames: what each call replaces, beside Spark's own statement for the same."""

from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import tallymark
from tallymark import ConflictError, WriteResult
from tests.support.readers import assert_readers_agree
from tests.support.storage import data_files, exactly_the_committed_files, stored

pytestmark = pytest.mark.spark

OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
COLUMNS = "flight long, year int, month int"
BY = ["year", "month"]
OLD = [(1, 2013, 1), (2, 2013, 2), (3, 2014, 1), (4, 20130, 1)]
NEW = [(9, 2013, 1)]
PARTITIONS: dict[str, tuple[dict[str, Any] | None, str]] = {
    "none": (None, "PARTITION (year, month)"),
    "year": ({"year": 2013}, "PARTITION (year = 2013, month)"),
    "month": ({"year": 2013, "month": 1}, "PARTITION (year = 2013, month = 1)"),
}


def frame(spark: SparkSession, rows: list[tuple[Any, ...]], columns: str = COLUMNS) -> DataFrame:
    return spark.createDataFrame(rows, columns).coalesce(1)


def write(df: DataFrame, table: Path, **keywords: Any) -> WriteResult:
    keywords.setdefault("mode", "append")
    result: WriteResult = tallymark.write(df, str(table), **keywords)
    return result


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Path:
    write(frame(spark, OLD), tmp_path / "table", partition_by=BY)
    return tmp_path / "table"


def rows_of(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in df.select("flight", "year", "month").collect())


def sparks_own(spark: SparkSession, folder: Path, statement: str, new: DataFrame) -> list[tuple[Any, ...]]:
    """What the same statement makes of a table of Spark's own."""
    spark.sql(f"CREATE TABLE own ({COLUMNS}) USING parquet PARTITIONED BY (year, month) LOCATION '{folder}'")
    try:
        frame(spark, OLD).write.insertInto("own")
        new.createOrReplaceTempView("new")
        spark.sql(f"{statement} SELECT * FROM new")
        return rows_of(spark.table("own"))
    finally:
        spark.sql("DROP TABLE own")


@pytest.mark.parametrize(
    ("verb", "how", "partition", "is_empty"),
    [*product(["OVERWRITE"], ["static", "dynamic"], PARTITIONS, [False, True]), ("INTO", "static", "year", False)],
)
def test_each_call_leaves_what_sparks_own_statement_leaves(
    spark: SparkSession, table: Path, tmp_path: Path, verb: str, how: str, partition: str, is_empty: bool
) -> None:
    static, clause = PARTITIONS[partition]
    new = frame(spark, [] if is_empty else NEW).drop(*(static or {}))
    spark.conf.set(OVERWRITE_MODE, how)
    try:
        expected = sparks_own(spark, tmp_path / "own", f"INSERT {verb} TABLE own {clause}", new)
        mode = "overwrite" if verb == "OVERWRITE" else "append"
        write(new, table, mode=mode, partition=static)
    finally:
        spark.conf.unset(OVERWRITE_MODE)
    assert rows_of(tallymark.read(spark, str(table))) == expected
    exactly_the_committed_files(table)
    if expected:  # of an empty directory Spark infers no schema
        assert_readers_agree(spark, table, frame(spark, expected))


def test_the_static_column_may_be_in_the_dataframe_or_not(spark: SparkSession, table: Path) -> None:
    others = {name: stored(table / name) for name in data_files(table) if not name.startswith("year=2013/")}
    for flight, columns in ((9, COLUMNS), (10, "flight long, month int")):
        rows = [(flight, 2013, 1) if "year" in columns else (flight, 1)]
        result = write(frame(spark, rows, columns), table, mode="overwrite", partition={"year": 2013})
        assert (result.rows, result.partitions) == (1, 1)
        expected = frame(spark, [*OLD[2:], (flight, 2013, 1)])
        assert_readers_agree(spark, table, expected)
    assert {name: stored(table / name) for name in others} == others
    exactly_the_committed_files(table)


def test_a_new_table_gets_the_column_in_the_values_type_and_every_reader_finds_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    day = date(2013, 7, 4)
    df = frame(spark, [(1, "EWR")], "flight long, origin string")
    write(df, tmp_path / "t", partition_by=["day", "year"], partition={"year": 2013, "day": day})
    expected = frame(spark, [(1, "EWR", 2013, day)], "flight long, origin string, year long, day date")
    back = tallymark.read(spark, str(tmp_path / "t"))
    assert back.schema == expected.schema
    for file in exactly_the_committed_files(tmp_path / "t"):
        assert file.startswith("day=2013-07-04/year=2013/")
        assert spark.read.parquet(str(tmp_path / "t" / file)).schema == expected.schema, "one file by itself"
    assert_readers_agree(spark, tmp_path / "t", expected)


def test_read_then_overwrite_by_position_keeps_what_was_appended_and_conflicts_with_what_was_replaced(
    spark: SparkSession, table: Path
) -> None:
    base = 1
    seen = tallymark.read(spark, str(table)).where("year = 2013").localCheckpoint()
    write(frame(spark, [(8, 2013, 1)]), table)
    doubled = seen.selectExpr("flight * 100 AS flight", "year", "month")
    write(doubled, table, mode="overwrite", partition={"year": 2013}, base=base)
    expected = [*OLD[2:], (8, 2013, 1), (100, 2013, 1), (200, 2013, 2)]
    assert_readers_agree(spark, table, frame(spark, expected))
    with pytest.raises(ConflictError, match="had read position 1"):
        write(doubled, table, mode="overwrite", partition={"year": 2013}, base=base)
    assert rows_of(tallymark.read(spark, str(table))) == sorted(expected)
