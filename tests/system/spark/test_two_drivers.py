"""Two writes at once. Both have begun, and hold a running task, before either can commit: no race is left to luck."""

from concurrent.futures import Future
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import tallymark
from tallymark import ConflictError, WriteResult
from tests.support.readers import assert_readers_agree
from tests.support.storage import exactly_the_committed_files
from tests.system.spark.jobs import run_both, write

pytestmark = pytest.mark.spark


def rows(spark: SparkSession, first: int, part: str) -> DataFrame:
    """One task, so that two jobs fit side by side."""
    return spark.range(first, first + 500, 1, 1).selectExpr("id", f"'{part}' AS part")


def write_both(tmp_path: Path, *inputs: DataFrame, mode: str) -> list[Future[WriteResult]]:
    """Write both to one table."""
    write_one = partial(write, table=tmp_path / "table", mode=mode)  # type: ignore[arg-type]
    return run_both(tmp_path, *((df, write_one) for df in inputs))


def test_two_appends_at_once_to_one_new_table_both_succeed(spark: SparkSession, tmp_path: Path) -> None:
    mine, theirs = rows(spark, 0, "a"), rows(spark, 500, "a")
    results = [done.result() for done in write_both(tmp_path, mine, theirs, mode="append")]
    assert sorted(result.position for result in results) == [1, 2]
    assert len(exactly_the_committed_files(tmp_path / "table")) == sum(result.files for result in results)
    assert assert_readers_agree(spark, tmp_path / "table", mine.unionAll(theirs)) == 1000


def test_of_two_overwrites_of_one_partition_one_wins_and_the_other_is_told_by_whom(
    spark: SparkSession, tmp_path: Path
) -> None:
    old = rows(spark, 0, "a").unionAll(rows(spark, 500, "b")).coalesce(1)
    write(old, tmp_path / "table")
    inputs = rows(spark, 1000, "a"), rows(spark, 2000, "a")
    done = write_both(tmp_path, *inputs, mode="overwrite")
    [lost] = [error for job in done if (error := job.exception())]
    [(won, winner)] = [(df, job.result()) for df, job in zip(inputs, done, strict=True) if not job.exception()]
    assert isinstance(lost, ConflictError)
    assert (lost.partition, lost.winner) == ("part=a", winner.instant)
    assert "'part=a'" in str(lost)
    assert winner.instant in str(lost)
    exactly_the_committed_files(tmp_path / "table")
    assert_readers_agree(spark, tmp_path / "table", won.unionAll(rows(spark, 500, "b")))


def test_overwrites_of_different_partitions_at_once_both_succeed(spark: SparkSession, tmp_path: Path) -> None:
    mine, theirs = rows(spark, 0, "a"), rows(spark, 500, "b")
    for done in write_both(tmp_path, mine, theirs, mode="overwrite"):
        assert done.result().rows == 500
    exactly_the_committed_files(tmp_path / "table")
    assert tallymark.read(spark, str(tmp_path / "table")).count() == 1000
