"""Spark writes to S3 and to HDFS while tasks fail and drivers die; judged around the library by what lies there."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tallymark
from tallymark import JobFailed
from tests.support import process
from tests.support.hadoop_aws import hadoop_aws_jars
from tests.support.place import Place, place_on
from tests.system.spark.elsewhere import assert_at_rest, boom, die, disturb, reach, write
from tests.system.spark.jobs import wide_rows
from tests.table_invariants import committed_files, decisions, table_is_at_rest

pytestmark = pytest.mark.spark


@pytest.fixture(params=["s3", pytest.param("hdfs", marks=pytest.mark.release)])
def place(request: pytest.FixtureRequest, spark: SparkSession) -> Place:
    if request.param == "s3":
        hadoop_aws_jars()
    found = place_on(request.param, request)
    reach(spark, found)
    return found


@pytest.mark.parametrize("place", ["s3", "hdfs"], indirect=True)
def test_appends_and_overwrites_are_what_every_reader_sees(spark: SparkSession, place: Place) -> None:
    first, again = wide_rows(spark), wide_rows(spark, version=1, partitions=2)
    assert write(first, place).rows == 3000
    dynamic = write(again, place, mode="overwrite")
    assert (dynamic.partitions, dynamic.removed_files) == (2, 4)
    assert_at_rest(spark, place, again.unionAll(first.where("part = 'p2'")))
    static = write(again, place, mode="overwrite", partition_overwrite="static")
    assert static.removed_files == dynamic.files + 2
    assert_at_rest(spark, place, again)


@pytest.mark.release
def test_a_task_that_raises_in_mid_file_leaves_no_rows_of_its_first_attempt(
    spark: SparkSession, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disturb(monkeypatch, tmp_path / "raised", boom)
    result = write(wide_rows(spark), place)
    assert (tmp_path / "raised").exists()
    assert result.markers > result.files, "the first attempt had marked files"
    assert_at_rest(spark, place, wide_rows(spark))


def test_an_overwrite_survives_the_sigkill_of_a_task_in_mid_file(
    spark: SparkSession, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = wide_rows(spark), wide_rows(spark, version=1, partitions=2)
    write(old, place)
    disturb(monkeypatch, tmp_path / "killed", die)
    result = write(new, place, mode="overwrite")
    assert (tmp_path / "killed").exists()
    assert result.markers > result.files
    assert_at_rest(spark, place, new.unionAll(old.where("part = 'p2'")))


@pytest.mark.release
def test_a_job_that_fails_for_good_leaves_what_was_there(
    spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = wide_rows(spark)
    write(old, place)
    before = committed_files(place.objects())
    disturb(monkeypatch, Path("/proc/never"), boom)  # a flag that cannot be set: each attempt raises
    with pytest.raises(JobFailed):
        write(wide_rows(spark, version=1), place)
    assert committed_files(place.objects()) == before
    assert_at_rest(spark, place, old)


def run_until_killed(place: Place, point: str, flag: Path) -> None:
    """Returns when the driver, and all that it has left behind, is gone."""
    settings = json.dumps(dict(place.spark_conf))
    await_the_rest = process.run_until_killed(
        "tests.system.spark.driver_elsewhere", place.native_url, point, str(flag), settings
    )
    await_the_rest()


@pytest.mark.parametrize("point", [pytest.param("while tasks write", marks=pytest.mark.release), "before the entry"])
def test_the_next_write_rolls_back_a_driver_that_was_killed_before_its_entry(
    spark: SparkSession, place: Place, tmp_path: Path, point: str
) -> None:
    old, more = wide_rows(spark), wide_rows(spark, version=2)
    write(old, place)
    run_until_killed(place, point, tmp_path / "killed")
    with pytest.raises(AssertionError):
        table_is_at_rest(place.objects())
    write(more, place)
    objects = assert_at_rest(spark, place, old.unionAll(more))
    assert [entry["kind"] for entry in decisions(objects).values()] == ["commit", "rollback", "commit"]


@pytest.mark.release
def test_the_next_write_completes_a_driver_that_was_killed_right_after_its_entry(
    spark: SparkSession, place: Place, tmp_path: Path
) -> None:
    old, new, more = wide_rows(spark), wide_rows(spark, version=1, partitions=2), wide_rows(spark, version=2)
    write(old, place)
    run_until_killed(place, "after the entry", tmp_path / "killed")
    overwritten = new.unionAll(old.where("part = 'p2'"))
    assert tallymark.read(spark, place.native_url).count() == overwritten.count(), "it has committed"
    write(more, place)
    objects = assert_at_rest(spark, place, overwritten.unionAll(more))
    assert [entry["kind"] for entry in decisions(objects).values()] == ["commit", "commit", "commit"]
