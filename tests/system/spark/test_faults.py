"""Tasks fail, are killed and fail for good; what the table holds is what was committed, to the file and to the row.

On this machine's disk, on S3 and on HDFS; judged around the library by what lies there.
"""

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tallymark import JobFailed, SizingSettings
from tests.support.place import Place
from tests.system.spark import faults
from tests.system.spark.elsewhere import assert_at_rest, die, disturb, place
from tests.system.spark.jobs import wide_rows, write
from tests.table_invariants import committed_files

__all__ = ["place"]

pytestmark = pytest.mark.spark

LOCAL = pytest.param("local", marks=pytest.mark.every_spark)
SMOKE = pytest.param("local", marks=[pytest.mark.every_spark, pytest.mark.smoke])
S3, HDFS = (pytest.param(store, marks=pytest.mark.release) for store in ("s3", "hdfs"))


@pytest.mark.parametrize("store", ["s3", "hdfs"])
def test_appends_and_overwrites_are_what_every_reader_sees(spark: SparkSession, place: Place) -> None:
    first, again = wide_rows(spark), wide_rows(spark, version=1, partitions=2)
    assert write(first, place.native_url).rows == 3000
    dynamic = write(again, place.native_url, mode="overwrite")
    assert (dynamic.partitions, dynamic.removed_files) == (2, 4)
    assert_at_rest(spark, place, again.unionAll(first.where("part = 'p2'")))
    static = write(again, place.native_url, mode="overwrite", partition_overwrite="static")
    assert static.removed_files == dynamic.files + 2
    assert_at_rest(spark, place, again)


@pytest.mark.parametrize("store", [SMOKE, S3, HDFS])
def test_a_task_that_raises_once_leaves_no_file_of_its_first_attempt(
    spark: SparkSession, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disturb(monkeypatch, tmp_path / "raised", faults.boom)
    result = write(wide_rows(spark), place.native_url)
    assert (tmp_path / "raised").exists()
    assert result.markers > result.files, "the first attempt had marked files"
    assert len(committed_files(assert_at_rest(spark, place, wide_rows(spark)))) == result.files
    assert result.rows == 3000


@pytest.mark.parametrize("store", [SMOKE, "s3", HDFS])
def test_a_dynamic_overwrite_survives_the_sigkill_of_a_task_in_mid_file(
    spark: SparkSession, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = wide_rows(spark), wide_rows(spark, version=1, partitions=2)
    write(old, place.native_url)
    disturb(monkeypatch, tmp_path / "killed", die)
    result = write(new, place.native_url, mode="overwrite")
    assert (tmp_path / "killed").exists()
    assert result.markers > result.files
    assert result.partitions == 2
    assert_at_rest(spark, place, new.unionAll(old.where("part = 'p2'")))


@pytest.mark.parametrize("store", [LOCAL])
def test_an_append_that_fills_small_files_survives_the_sigkill_of_a_writing_task(
    spark: SparkSession, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a killed task had read of a small file, the next attempt reads anew: no row is there twice, none is gone."""
    old, new = wide_rows(spark), wide_rows(spark, version=1, count=10_000)
    write(old, place.url)
    before = place.data_files()
    disturb(monkeypatch, tmp_path / "killed", die)
    result = write(new, place.url, sizing=SizingSettings())
    assert (tmp_path / "killed").exists()
    assert result.sizing is not None
    assert result.sizing.filled_files == len(before - place.data_files()) > 0
    assert result.markers > result.files, "the first attempt had marked files"
    assert_at_rest(spark, place, new.unionAll(old))


@pytest.mark.parametrize("store", [LOCAL, S3, HDFS])
def test_a_job_whose_task_fails_for_good_leaves_what_was_there_and_says_why_in_one_line(
    spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = wide_rows(spark)
    write(old, place.native_url)
    before = place.objects()
    disturb(monkeypatch, None, faults.boom)
    with pytest.raises(JobFailed) as failed:
        write(wide_rows(spark, version=1), place.native_url)
    assert str(failed.value) == "Spark gave up on a task: RuntimeError: boom"
    assert "RuntimeError: boom" in failed.value.details
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__, "no page of Py4J behind it"
    objects = assert_at_rest(spark, place, old)
    assert {path: objects[path] for path in committed_files(objects)} == {
        path: before[path] for path in committed_files(before)
    }


@pytest.mark.parametrize("store", [LOCAL])
def test_a_task_that_goes_on_after_its_job_failed_cannot_publish(
    spark: SparkSession, place: Place, tmp_path: Path
) -> None:
    old = wide_rows(spark)
    write(old, place.url)
    before = place.data_files()
    waiting, go = tmp_path / "waiting", tmp_path / "go"
    rows = faults.with_fault(wide_rows(spark, version=1), partial(faults.meet, waiting, go), task=1)
    with pytest.raises(JobFailed):
        write(faults.with_fault(rows, partial(faults.fail_when, waiting)), place.url)
    go.touch()
    faults.await_that(lambda: not faults.running_tasks(spark))
    assert_at_rest(spark, place, old)
    assert place.data_files() == before
