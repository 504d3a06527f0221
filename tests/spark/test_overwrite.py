"""What an overwrite replaces, and what it does not touch."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import tallymark
from tallymark import WriteResult
from tests.support.readers import assert_readers_agree
from tests.support.storage import data_files, exactly_the_committed_files, stored

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"


def rows(spark: SparkSession, *, version: int, where: str = "true") -> DataFrame:
    return spark.range(60).selectExpr("id", f"{version} AS version", "id % 3 AS part").where(where)


def write(df: DataFrame, table: Path, **keywords: Any) -> WriteResult:
    result: WriteResult = tallymark.write(df, str(table), partition_by=["part"], **keywords)
    return result


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Path:
    write(rows(spark, version=0), tmp_path / "table", mode="append")
    return tmp_path / "table"


@pytest.mark.smoke
def test_a_dynamic_overwrite_touches_only_the_partitions_of_its_input(spark: SparkSession, table: Path) -> None:
    others = {name: stored(table / name) for name in data_files(table) if not name.startswith("part=1/")}
    result = write(rows(spark, version=1, where="part = 1"), table, mode="overwrite", partition_overwrite="dynamic")
    assert result.partitions == 1
    committed = exactly_the_committed_files(table)
    assert {name: stored(table / name) for name in others} == others
    assert {name.partition("/")[0] for name in committed - others.keys()} == {"part=1"}
    expected = rows(spark, version=0, where="part != 1").unionAll(rows(spark, version=1, where="part = 1"))
    assert assert_readers_agree(spark, table, expected) == 60


def test_a_dynamic_overwrite_without_rows_changes_no_data(spark: SparkSession, table: Path) -> None:
    before = {name: stored(table / name) for name in data_files(table)}
    result = write(rows(spark, version=1, where="false"), table, mode="overwrite", partition_overwrite="dynamic")
    assert (result.rows, result.files, result.removed_files) == (0, 0, 0)
    assert {name: stored(table / name) for name in exactly_the_committed_files(table)} == before
    assert_readers_agree(spark, table, rows(spark, version=0))


@pytest.mark.smoke
def test_a_static_overwrite_replaces_the_whole_table(spark: SparkSession, table: Path) -> None:
    before = data_files(table)
    new = rows(spark, version=1, where="part = 1")
    result = write(new, table, mode="overwrite", partition_overwrite="static")
    assert result.removed_files == len(before)
    assert not exactly_the_committed_files(table) & before
    assert_readers_agree(spark, table, new)


@pytest.mark.parametrize(
    ("said", "by_the_call", "rows_left"),
    [
        ("dynamic", {}, 60),
        ("DYNAMIC", {}, 60),
        ("static", {}, 20),
        ("dynamic", {"partition_overwrite": "static"}, 20),
    ],
)
def test_the_session_says_how_to_overwrite_where_the_call_does_not(
    spark: SparkSession, table: Path, said: str, by_the_call: dict[str, str], rows_left: int
) -> None:
    spark.conf.set(OVERWRITE_MODE, said)
    try:
        write(rows(spark, version=1, where="part = 1"), table, mode="overwrite", **by_the_call)
    finally:
        spark.conf.unset(OVERWRITE_MODE)
    assert tallymark.read(spark, str(table)).count() == rows_left


def test_a_table_without_partitions_is_overwritten_as_a_whole_also_dynamically(
    spark: SparkSession, tmp_path: Path
) -> None:
    url = str(tmp_path / "flat")
    tallymark.write(rows(spark, version=0), url, mode="append")
    new = rows(spark, version=1, where="part = 1")
    tallymark.write(new, url, mode="overwrite", partition_overwrite="dynamic")
    exactly_the_committed_files(tmp_path / "flat")
    assert_readers_agree(spark, tmp_path / "flat", new)
