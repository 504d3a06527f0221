"""A session of Spark Connect: the driver is another process, and this one is its client.

Needs the packages of ``pyspark[connect]`` and a process without a classic session: ``nox -s spark-connect``.
"""

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

import tallymark
from tallymark import InvalidRequest, JobFailed, SharedServiceSettings, SizingSettings
from tests.cli.test_serve import serving
from tests.support.jars import QUICK_JAVA, java
from tests.support.spark import WARNINGS
from tests.support.storage import exactly_the_committed_files

pytestmark = [pytest.mark.connect, *(pytest.mark.filterwarnings(each) for each in WARNINGS)]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    java()
    pytest.importorskip("grpc")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        for name, value in QUICK_JAVA.items():
            patch.setenv(name, value)
        builder = SparkSession.builder.remote("local[2,4]").config("spark.sql.shuffle.partitions", "2")
        with warnings.catch_warnings(action="ignore"):  # the builder tells the server twice, and it minds
            session = builder.config("spark.ui.enabled", "false").getOrCreate()
        yield session
        session.stop()


def rows(spark: SparkSession, *, version: int = 0) -> DataFrame:
    return spark.range(0, 60, 1, 2).selectExpr("id", f"{version} AS version", "id % 3 AS part")


def found(spark: SparkSession, table: Path) -> list[tuple[int, int]]:
    return sorted((row.id, row.version) for row in tallymark.read(spark, table).collect())


def test_tasks_mark_their_files_themselves(spark: SparkSession, tmp_path: Path) -> None:
    result = tallymark.write(rows(spark), tmp_path / "t", mode="append", partition_by=["part"])
    assert (result.rows, result.files, result.partitions) == (60, 6, 3)
    assert (result.marker_mode, result.direct_markers) == ("direct", 6)
    assert len(exactly_the_committed_files(tmp_path / "t")) == 6
    assert found(spark, tmp_path / "t") == [(number, 0) for number in range(60)]


def test_an_overwrite_replaces_the_partitions_that_it_has_rows_for(spark: SparkSession, tmp_path: Path) -> None:
    write = partial(tallymark.write, url=tmp_path / "t", partition_by=["part"], partition_overwrite="dynamic")
    write(rows(spark), mode="append")
    result = write(rows(spark, version=1).where("part = 1"), mode="overwrite")
    assert (result.rows, result.removed_files) == (20, 2)
    exactly_the_committed_files(tmp_path / "t")
    assert found(spark, tmp_path / "t") == [(number, int(number % 3 == 1)) for number in range(60)]


def test_files_are_sized_and_filled(spark: SparkSession, tmp_path: Path) -> None:
    write = partial(tallymark.write, url=tmp_path / "t", mode="append", partition_by=["part"], sizing=SizingSettings())
    assert write(rows(spark)).files == 3
    result = write(spark.range(60, 90, 1, 2).selectExpr("id", "0 AS version", "id % 3 AS part"))
    assert (result.rows, result.files, result.removed_files) == (30, 3, 3)
    assert len(exactly_the_committed_files(tmp_path / "t")) == 3
    assert found(spark, tmp_path / "t") == [(number, 0) for number in range(90)]


def test_rows_are_changed_by_their_keys(spark: SparkSession, tmp_path: Path) -> None:
    write = partial(tallymark.write, url=tmp_path / "t")
    write(rows(spark), mode="upsert", record_key="id", unique_in="table", readers="table", partition_by=["part"])
    moved = spark.range(50, 70, 1, 2).selectExpr("id", "1 AS version", "0L AS part")
    changes = write(moved, mode="upsert").changes
    assert changes is not None
    assert (changes.updated, changes.inserted, changes.deleted) == (3, 17, 7)
    write(rows(spark).where("id < 50"), mode="delete")
    assert found(spark, tmp_path / "t") == [(number, 1) for number in range(50, 70)]


def test_rows_of_one_partition_are_spread_over_files(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(0, 20_000, 1, 2).selectExpr("id", "CAST(xxhash64(id) % 1000000000 AS INT) AS version", "0 AS part")
    sizing = SizingSettings(max_file_bytes=50_000, small_file_bytes=40_000)
    result = tallymark.write(df, tmp_path / "t", mode="append", partition_by=["part"], sizing=sizing)
    assert 3 <= result.files <= 5
    assert len(found(spark, tmp_path / "t")) == 20_000


def test_a_dry_run_foretells_the_write(spark: SparkSession, tmp_path: Path) -> None:
    tallymark.write(rows(spark), tmp_path / "t", mode="append", partition_by=["part"])
    before = exactly_the_committed_files(tmp_path / "t")
    some = rows(spark, version=1).where("part = 1")
    plan = tallymark.plan(some, tmp_path / "t", mode="overwrite", partition_overwrite="dynamic")
    assert exactly_the_committed_files(tmp_path / "t") == before
    result = tallymark.write(some, tmp_path / "t", mode="overwrite", partition_overwrite="dynamic")
    assert (plan.rows, plan.files, len(plan.removed)) == (20, 2, 2)
    assert (result.rows, result.files, result.removed_files) == (20, 2, 2)


def test_a_dry_run_whose_rows_cannot_be_counted_says_why_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(JobFailed) as failed:
        tallymark.plan(failing(rows(spark), refuse), tmp_path / "t", mode="append")
    assert str(failed.value) == "Spark gave up on a task: ValueError: no such row"
    assert list(tmp_path.iterdir()) == []


def test_sparks_catalog_is_told_of_new_partitions(spark: SparkSession, tmp_path: Path) -> None:
    location = f"{tmp_path}/t"
    spark.sql(
        "CREATE TABLE told (id BIGINT, version INT, part BIGINT) USING parquet "
        f"PARTITIONED BY (part) LOCATION '{location}'"
    )
    result = tallymark.write(rows(spark), location, mode="append", partition_by=["part"], catalog_table="told")
    assert (result.pending, result.catalog) == (None, "spark_catalog.default.told: 3 partitions added, 0 dropped")
    assert spark.table("told").count() == 60


def test_a_read_has_the_written_columns_and_all_of_them_nullable(spark: SparkSession, tmp_path: Path) -> None:
    tallymark.write(rows(spark), tmp_path / "t", mode="append")
    schema = tallymark.read(spark, tmp_path / "t").schema
    assert schema.simpleString() == "struct<id:bigint,version:int,part:bigint>"
    assert all(field.nullable for field in schema)


def failing(df: DataFrame, fail: Callable[[], None]) -> DataFrame:
    def task(fail: Callable[[], None], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            fail()
            yield batch

    return df.mapInArrow(partial(task, fail), df.schema)


def die_once(flag: Path) -> None:
    if not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def refuse() -> None:
    raise ValueError("no such row\nand more")


cloudpickle.register_pickle_by_value(sys.modules[__name__])


def test_a_task_that_is_killed_leaves_nothing_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    df = failing(rows(spark), partial(die_once, tmp_path / "flag"))
    assert tallymark.write(df, tmp_path / "t", mode="append").rows == 60
    assert (tmp_path / "flag").exists()
    exactly_the_committed_files(tmp_path / "t")
    assert len(found(spark, tmp_path / "t")) == 60


def test_a_job_that_fails_says_why_in_one_line_and_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    tallymark.write(rows(spark), tmp_path / "t", mode="append")
    before = exactly_the_committed_files(tmp_path / "t")
    with pytest.raises(JobFailed) as failed:
        tallymark.write(failing(rows(spark), refuse), tmp_path / "t", mode="append")
    assert str(failed.value) == "Spark gave up on a task: ValueError: no such row"
    assert exactly_the_committed_files(tmp_path / "t") == before


@pytest.mark.parametrize("named_by", ["conf", "argument", "environment"])
def test_a_service_outside_of_this_process_takes_the_markers_of_its_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named_by: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    lake = tmp_path / "lake"
    with serving("--root", str(lake)) as (_, port, _):
        url, service = f"http://127.0.0.1:{port}", None
        if named_by == "conf":
            spark.conf.set("spark.tallymark.service.url", url)
        elif named_by == "environment":
            monkeypatch.setenv("TALLYMARK_SERVICE", url)
        else:
            service = SharedServiceSettings(url=url)
        try:
            for number in range(2):
                df = rows(spark)
                result = tallymark.write(df, lake / "t", mode="append", partition_by=["part"], service=service)
                assert (result.rows, result.marker_mode, result.direct_markers) == (60, "batched", 0), number
        finally:
            spark.conf.unset("spark.tallymark.service.url")
    assert len(found(spark, lake / "t")) == 120
    exactly_the_committed_files(lake / "t")


def test_markers_of_hudi_are_not_taken_by_a_process_that_tasks_cannot_reach(
    spark: SparkSession, tmp_path: Path
) -> None:
    refused = pytest.raises(InvalidRequest, match="run 'tallymark serve' where they can")
    with refused, tallymark.hudi.markers(spark, roots=[str(tmp_path)]):
        pass


def test_markers_by_a_service_that_tasks_cannot_reach_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="markers='batched' needs tasks to reach this process"):
        tallymark.write(rows(spark), tmp_path / "t", mode="append", markers="batched")
    assert list(tmp_path.iterdir()) == []
