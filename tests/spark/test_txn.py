"""A write of Spark's with a txn: committed once, and no Spark job where it was committed before."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import tallymark
from tallymark import InvalidRequest, WriteResult
from tests.support.readers import assert_readers_agree
from tests.support.storage import Stored, exactly_the_committed_files, files, stored

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

TXN = "flights:2026-11-21"


def rows(spark: SparkSession, version: int = 0) -> DataFrame:
    return spark.range(60).selectExpr("id", f"{version} AS version", "id % 3 AS part")


def write(df: DataFrame, table: Path, **keywords: Any) -> WriteResult:
    keywords = {"mode": "append", "txn": TXN, **keywords}
    result: WriteResult = tallymark.write(df, str(table), partition_by=["part"], **keywords)
    return result


def everything(table: Path) -> dict[str, Stored]:
    return {name: stored(table / name) for name in files(table)}


def fails_if_read(df: DataFrame) -> DataFrame:
    """The same columns; a task that asks for a row of it fails."""
    return df.selectExpr("id + bigint(raise_error('a task has run')) AS id", "version", "part")


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_rerun_runs_no_task_and_returns_the_result_of_then(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    table = tmp_path / "table"
    first = write(rows(spark), table, mode=mode)
    before = everything(table)
    again = write(fails_if_read(rows(spark)), table, mode=mode)
    assert again == replace(first, is_rerun=True)
    assert (first.txn, first.is_rerun) == (TXN, False)
    assert "committed before; nothing was written" in str(again)
    assert everything(table) == before
    assert_readers_agree(spark, table, rows(spark))


@pytest.mark.smoke
def test_a_rerun_after_a_failed_job_writes_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    with pytest.raises(tallymark.JobFailed):
        write(fails_if_read(rows(spark)), table)
    assert not write(rows(spark), table).is_rerun
    exactly_the_committed_files(table)
    assert_readers_agree(spark, table, rows(spark))


def test_a_txn_reused_for_an_overwrite_is_refused_before_any_task(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    write(rows(spark), table)
    before = everything(table)
    with pytest.raises(InvalidRequest, match="give this one a txn of its own"):
        write(fails_if_read(rows(spark, 1)), table, mode="overwrite")
    with pytest.raises(InvalidRequest, match="'version' of the table"):
        write(rows(spark).drop("version"), table)
    with pytest.raises(InvalidRequest, match="txn='2026-11-21'"):
        write(rows(spark), table, txn="2026-11-21")
    assert everything(table) == before
