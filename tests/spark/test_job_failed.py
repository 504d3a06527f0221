"""Whatever Spark has to say about a failed task, the user reads one line of it first."""

import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import tallymark
from tallymark import JobFailed
from tests.support.storage import exactly_the_committed_files

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


def failing(spark: SparkSession, fail: Callable[[], NoReturn]) -> DataFrame:
    def task(fail: Callable[[], NoReturn], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            fail()
        yield from ()

    return spark.range(0, 1, 1, 1).mapInArrow(partial(task, fail), "id long")


def message_of(df: DataFrame, table: Path) -> str:
    with pytest.raises(JobFailed) as failed:
        tallymark.write(df, str(table), mode="append")
    assert failed.value.details, "all that Spark said can still be had"
    assert failed.value.__suppress_context__
    assert exactly_the_committed_files(table) == set()
    return str(failed.value)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no such row"), "ValueError: no such row"),
        (AssertionError(), "AssertionError"),
        (ValueError("one\ntwo: three"), "ValueError: one"),
        (KeyError("key"), "KeyError: 'key'"),
        (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
    ],
)
def test_an_error_of_a_task_is_its_first_line(spark: SparkSession, tmp_path: Path, error: Exception, said: str) -> None:
    def fail() -> NoReturn:
        raise error

    assert message_of(failing(spark, fail), tmp_path / "t") == f"Spark gave up on a task: {said}"


def test_an_error_raised_from_another_is_the_last_one(spark: SparkSession, tmp_path: Path) -> None:
    def fail() -> NoReturn:
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise RuntimeError("outer") from error

    assert message_of(failing(spark, fail), tmp_path / "t") == "Spark gave up on a task: RuntimeError: outer"


def test_a_module_that_executors_lack_is_named_with_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    def fail() -> NoReturn:
        raise ModuleNotFoundError("No module named 'tallymark'")

    message = message_of(failing(spark, fail), tmp_path / "t")
    assert message.startswith("Spark gave up on a task: ModuleNotFoundError: No module named 'tallymark'; ")
    assert "--py-files" in message


def test_a_worker_that_is_killed_again_and_again_is_told_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    def fail() -> NoReturn:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    message = message_of(failing(spark, fail), tmp_path / "t")
    assert "Python worker exited unexpectedly" in message
    assert "\n" not in message


def test_an_error_of_an_expression_is_told_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(1).selectExpr("id", "string(raise_error('no such row')) AS bad")
    message = message_of(df, tmp_path / "t")
    assert "no such row" in message
    assert "\n" not in message
    assert len(message) < 600
