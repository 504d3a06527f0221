"""A table as it was, read by Spark; and the table that keeps what it needs for it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import tallymark
from tests.support.storage import data_files

pytestmark = pytest.mark.spark


def rows(spark: SparkSession, version: int) -> DataFrame:
    return spark.range(6).selectExpr("id", f"{version} AS version", "id % 2 AS part")


def versions(spark: SparkSession, url: str, as_of: int | str | datetime) -> list[int]:
    return sorted(row.version for row in tallymark.read(spark, url, as_of=as_of).select("version").distinct().collect())


@pytest.mark.smoke
def test_spark_reads_a_table_as_of_a_position_an_instant_and_a_time(spark: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "table")
    first = tallymark.write(rows(spark, 1), url, mode="append", partition_by=["part"], readers="table")
    between = datetime.now(UTC)
    second = tallymark.write(rows(spark, 2), url, mode="overwrite")
    assert tallymark.read(spark, url).select("version").distinct().collect() == [(2,)]
    assert versions(spark, url, first.position) == [1]
    assert versions(spark, url, second.position) == [2]
    assert versions(spark, url, first.instant) == [1]
    assert versions(spark, url, between) == [1]
    assert versions(spark, url, between.isoformat()) == [1]
    assert tallymark.read(spark, url, as_of=0).count() == 0
    assert tallymark.read(spark, url, as_of=1).schema == tallymark.read(spark, url).schema


def test_a_scan_of_what_is_retained_outlasts_an_overwrite_and_not_a_clean(spark: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "table")
    tallymark.write(rows(spark, 1), url, mode="append", partition_by=["part"], readers="table", retain_hours=1)
    scan = tallymark.read(spark, url)
    tallymark.write(rows(spark, 2), url, mode="overwrite")
    assert scan.where("version = 1").count() == 6
    tallymark.write(rows(spark, 3), url, mode="overwrite")
    assert len(data_files(tmp_path / "table")) >= 6
    with pytest.raises(tallymark.InvalidRequest, match="readers='directory': the table was made with readers='table'"):
        tallymark.write(rows(spark, 4), url, mode="append", readers="directory")
    assert tallymark.read(spark, url, as_of=1).count() == 6
