"""Deletes by predicate with Spark's tasks."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tallymark
from tallymark import InvalidRequest
from tests.support.storage import exactly_the_committed_files

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


def test_rows_that_match_are_deleted_and_other_files_stay(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "visits"
    visits = spark.range(0, 60, 1, 3).selectExpr("id", "id % 3 AS day", "id % 10 AS user")
    tallymark.write(visits.repartition(3, "day"), str(path), mode="append", partition_by=["day"])
    inodes = {file.stat().st_ino for file in path.glob("day=0/*.parquet")}
    where = "day = 2 OR (day = 1 AND user IN (1, 7))"
    plan = tallymark.delete(spark, str(path), where=where, txn="gdpr:1")
    assert plan.changes is not None
    assert (plan.changes.deleted, plan.changes.removed_files, plan.changes.rewritten_files) == (24, 1, 1)
    expected = visits.where(f"NOT ({where})").collect()
    assert sorted(tallymark.read(spark, str(path)).select("id", "day", "user").collect()) == sorted(expected)
    assert {file.stat().st_ino for file in path.glob("day=0/*.parquet")} == inodes
    again = tallymark.delete(spark, str(path), where=where, txn="gdpr:1")
    assert (again.is_rerun, again.changes) == (True, plan.changes)
    assert tallymark.delete(spark, str(path), where="user = 99").changes.deleted == 0  # type: ignore[union-attr]
    exactly_the_committed_files(path)


def test_a_predicate_that_does_not_fit_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "visits")
    tallymark.write(spark.range(3).selectExpr("id AS user"), path, mode="append")
    with pytest.raises(InvalidRequest, match="usr"):
        tallymark.delete(spark, path, where="usr = 1")
    with pytest.raises(InvalidRequest, match="attempts=0"):
        tallymark.delete(spark, path, where="user = 1", attempts=0)
    assert tallymark.read(spark, path).count() == 3
