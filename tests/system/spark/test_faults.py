"""Tasks fail, are killed and fail for good; what the table holds is what was committed, to the file and to the row."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tallymark import JobFailed, SizingSettings
from tests.support.readers import assert_readers_agree
from tests.support.storage import data_files, exactly_the_committed_files, tree
from tests.system.spark import faults
from tests.system.spark.jobs import wide_rows, write

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


@pytest.mark.smoke
def test_a_task_that_raises_once_leaves_no_file_of_its_first_attempt(
    spark: SparkSession, table: Path, tmp_path: Path
) -> None:
    rows, flag = wide_rows(spark), tmp_path / "raised"
    result = write(faults.with_fault(rows, partial(faults.once, flag, partial(faults.boom_when_marked, table))), table)
    assert flag.exists()
    assert len(exactly_the_committed_files(table)) == result.files
    assert result.markers > result.files, "the first attempt had marked files"
    assert assert_readers_agree(spark, table, rows) == result.rows == 3000


@pytest.mark.smoke
def test_an_append_survives_the_sigkill_of_its_writing_tasks(spark: SparkSession, table: Path, tmp_path: Path) -> None:
    rows, flag = wide_rows(spark), tmp_path / "killed"
    result = write(faults.with_fault(rows, partial(faults.once, flag, partial(faults.kill_writers, table))), table)
    assert flag.exists()
    assert result.markers > result.files
    assert len(exactly_the_committed_files(table)) == result.files
    assert assert_readers_agree(spark, table, rows) == 3000


def test_an_append_that_fills_small_files_survives_the_sigkill_of_its_writing_tasks(
    spark: SparkSession, table: Path
) -> None:
    """What a killed task had read of a small file, the next attempt reads anew: no row is there twice, none is gone."""
    old, new = wide_rows(spark), wide_rows(spark, version=1, count=10_000)
    write(old, table)
    before = data_files(table)
    with ThreadPoolExecutor(1) as killer:
        killed = killer.submit(kill_first_writer, table)
        result = write(new, table, sizing=SizingSettings())
    assert killed.result()
    assert result.sizing is not None
    assert result.sizing.filled_files == len(before - data_files(table)) > 0
    assert result.markers > result.files, "the first attempt had marked files"
    exactly_the_committed_files(table)
    assert assert_readers_agree(spark, table, new.unionAll(old)) == 13_000


def kill_first_writer(table: Path) -> set[int]:
    """From outside: with sizing, rows are shuffled before any of them is written."""
    pids = faults.await_that(lambda: faults.writers(table))
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return pids


def test_a_dynamic_overwrite_survives_the_sigkill_of_its_writing_tasks(
    spark: SparkSession, table: Path, tmp_path: Path
) -> None:
    old, new, flag = wide_rows(spark), wide_rows(spark, version=1, partitions=2), tmp_path / "killed"
    write(old, table)
    fault = partial(faults.once, flag, partial(faults.kill_writers, table))
    result = write(faults.with_fault(new, fault), table, mode="overwrite")
    assert flag.exists()
    assert result.partitions == 2
    exactly_the_committed_files(table)
    assert_readers_agree(spark, table, new.unionAll(old.where("part = 'p2'")))


def test_a_job_whose_task_fails_for_good_leaves_nothing_and_says_why_in_one_line(
    spark: SparkSession, table: Path
) -> None:
    old = wide_rows(spark)
    write(old, table)
    before = data_files(table)
    untouched = {name: tree(table)[name] for name in before}
    with pytest.raises(JobFailed) as failed:
        write(faults.with_fault(wide_rows(spark, version=1), partial(faults.boom_when_marked, table)), table)
    message = str(failed.value)
    assert message == "Spark gave up on a task: RuntimeError: boom"
    assert "RuntimeError: boom" in failed.value.details
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__, "no page of Py4J behind it"
    assert exactly_the_committed_files(table) == before
    assert {name: tree(table)[name] for name in before} == untouched
    assert_readers_agree(spark, table, old)


def test_a_task_that_goes_on_after_its_job_failed_cannot_publish(
    spark: SparkSession, table: Path, tmp_path: Path
) -> None:
    write(wide_rows(spark), table)
    before = data_files(table)
    waiting, go = tmp_path / "waiting", tmp_path / "go"
    rows = faults.with_fault(wide_rows(spark, version=1), partial(faults.meet, waiting, go), task=1)
    with pytest.raises(JobFailed):
        write(faults.with_fault(rows, partial(faults.fail_when, waiting)), table)
    go.touch()
    faults.await_that(lambda: not faults.running_tasks(spark))
    assert exactly_the_committed_files(table) == before
