"""Writes with sizing: files of the right size at the first commit, and every row as it was."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from anyio.from_thread import start_blocking_portal
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import tallymark
from tallymark import InvalidRequest, JobFailed, SizingSettings, TaskSettings, WriteResult
from tallymark.spark_glue.sizing import has_estimate
from tests.support.storage import data_files, exactly_the_committed_files

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

MOST = 100_000
SIZING = SizingSettings(max_file_bytes=MOST, small_file_bytes=80_000)
TASKS = TaskSettings(row_group_bytes=50_000)


def rows(spark: SparkSession, start: int = 0, stop: int = 40_000, *, parts: str = "id % 2") -> DataFrame:
    """Some 12 bytes each when they are encoded."""
    columns = ("id", "xxhash64(id) / 7 AS x", "'x' AS name", f"CAST({parts} AS INT) AS part")
    return spark.range(start, stop, 1, 3).selectExpr(*columns)


def write(df: DataFrame, table: Path, mode: Any = "append", **words: Any) -> WriteResult:
    said: dict[str, Any] = {"partition_by": ["part"], "sizing": SIZING, "tasks": TASKS} | words
    result: WriteResult = tallymark.write(df, str(table), mode=mode, **said)
    return result


def sizes(table: Path) -> dict[str, list[int]]:
    """Bytes of the files that are there, which are the committed ones, by partition; the largest first."""
    found: dict[str, list[int]] = {}
    for path in exactly_the_committed_files(table):
        found.setdefault(path.rpartition("/")[0], []).append((table / path).stat().st_size)
    return {partition: sorted(files, reverse=True) for partition, files in sorted(found.items())}


def same_rows(spark: SparkSession, table: Path, *written: DataFrame) -> None:
    found = tallymark.read(spark, str(table))
    wanted = written[0]
    for df in written[1:]:
        wanted = wanted.unionAll(df)
    assert sorted(map(repr, found.select(*wanted.columns).collect())) == sorted(map(repr, wanted.collect()))


def test_files_are_of_the_right_size_at_the_first_commit(spark: SparkSession, tmp_path: Path) -> None:
    df = rows(spark, parts="GREATEST(0, id % 20 - 17)")  # of 20 rows 18, one and one
    result = write(df, tmp_path / "t")
    large, *small = sizes(tmp_path / "t").values()
    assert [len(files) for files in small] == [1, 1]
    assert len(large) <= sum(large) / MOST + 2
    assert all(0.75 * MOST < size < 1.25 * MOST for size in large)
    assert result.rows == 40_000
    same_rows(spark, tmp_path / "t", df)


@pytest.mark.smoke
def test_appends_of_few_rows_fill_small_files(spark: SparkSession, tmp_path: Path) -> None:
    appended = [rows(spark, start, start + 500) for start in range(0, 2000, 500)]
    results = [write(df, tmp_path / "t") for df in appended]
    assert [len(files) for files in sizes(tmp_path / "t").values()] == [1, 1]
    assert [result.removed_files for result in results] == [0, 2, 2, 2]
    same_rows(spark, tmp_path / "t", *appended)


def test_a_table_without_partitions_is_sized_and_filled(spark: SparkSession, tmp_path: Path) -> None:
    df, more = rows(spark), rows(spark, 0, 1000)
    write(df, tmp_path / "t", partition_by=[])
    (before,) = sizes(tmp_path / "t").values()
    assert all(0.75 * MOST < size < 1.25 * MOST for size in before)
    write(more, tmp_path / "t", partition_by=[])
    same_rows(spark, tmp_path / "t", df, more)


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_an_overwrite_sizes_its_files_and_fills_none(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    old, new = rows(spark, 0, 1000), rows(spark).where("part = 1")
    write(old, tmp_path / "t")
    before = data_files(tmp_path / "t")
    result = write(new, tmp_path / "t", "overwrite", partition_overwrite=kind)
    files = sizes(tmp_path / "t")
    assert all(0.75 * MOST < size < 1.25 * MOST for size in files["part=1"])
    assert result.removed_files == len(before - data_files(tmp_path / "t")) == {"static": 2, "dynamic": 1}[kind]
    same_rows(spark, tmp_path / "t", new, *([old.where("part = 0")] if kind == "dynamic" else []))


def test_a_small_table_tells_only_of_as_much_as_it_holds(spark: SparkSession, tmp_path: Path) -> None:
    write(rows(spark, 0, 20), tmp_path / "t")
    table = tallymark.open_table(tmp_path / "t")
    with start_blocking_portal("trio") as portal:
        files = portal.call(table.snapshot).files
    held = sum(file.plain_bytes for file in files)
    assert [has_estimate(size, files) for size in (held, held + 1)] == [True, False]


def test_a_static_partition_is_filled_in(spark: SparkSession, tmp_path: Path) -> None:
    words: dict[str, Any] = {"partition_by": ["region", "part"], "partition": {"region": "øst"}}
    df, more = rows(spark, 0, 3000), rows(spark, 3000, 4000)
    write(df, tmp_path / "t", **words)
    write(more, tmp_path / "t", **words)
    assert {partition: len(files) for partition, files in sizes(tmp_path / "t").items()} == {
        "region=øst/part=0": 1,
        "region=øst/part=1": 1,
    }
    same_rows(spark, tmp_path / "t", df, more)


def test_null_and_odd_partition_values_find_their_files(spark: SparkSession, tmp_path: Path) -> None:
    texts = [None, "", "a/b", "50%", "🦆", " ", "__x"]
    df = spark.createDataFrame([(number, texts[number % 7]) for number in range(700)], "id int, part string")
    for _ in range(2):
        write(df, tmp_path / "t")
    assert [len(files) for files in sizes(tmp_path / "t").values()] == [1] * 6
    wanted = df.withColumn("part", f.expr("nullif(part, '')"))
    same_rows(spark, tmp_path / "t", wanted, wanted)


def test_rows_that_nobody_planned_are_written_all_the_same(spark: SparkSession, tmp_path: Path) -> None:
    told = tmp_path / "computed"

    def another_each_time(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = not told.exists()
        for batch in batches:
            ids: list[Any] = batch.column(0).to_pylist()
            parts = pa.array([0 if first else number % 5 for number in ids], pa.int32())
            yield pa.RecordBatch.from_arrays([batch.column(0), parts], ["id", "part"])
        told.touch()

    df = spark.range(0, 1000, 1, 1).mapInArrow(another_each_time, "id long, part int")
    result = write(df, tmp_path / "t", sizing=SizingSettings(max_file_bytes=MOST, small_file_bytes=1, policy="hudi"))
    assert result.rows == 1000
    assert len(sizes(tmp_path / "t")) == 5
    same_rows(spark, tmp_path / "t", df)


def test_no_rows_are_no_files(spark: SparkSession, tmp_path: Path) -> None:
    assert write(rows(spark, 0, 0), tmp_path / "t").files == 0
    assert sizes(tmp_path / "t") == {}


def test_without_packing_no_more_jobs_run_than_ever(spark: SparkSession, tmp_path: Path) -> None:
    off = SizingSettings(max_file_bytes=MOST, small_file_bytes=0)
    for number, sizing in enumerate((None, off)):
        spark.sparkContext.setJobGroup(f"sizing-{number}", "")
        write(rows(spark, 0, 3000), tmp_path / str(number), sizing=sizing)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type] # clears it
    tracker = spark.sparkContext.statusTracker()
    assert [len(tracker.getJobIdsForGroup(f"sizing-{number}")) for number in range(2)] == [1, 1]


def test_a_rerun_counts_nothing(spark: SparkSession, tmp_path: Path) -> None:
    first = write(rows(spark, 0, 100), tmp_path / "t", txn="job:1")
    fails = rows(spark, 0, 100).withColumn("id", f.expr("CAST(raise_error('the rows were read') AS BIGINT)"))
    again = write(fails, tmp_path / "t", txn="job:1")
    assert (again.is_rerun, again.instant) == (True, first.instant)


def test_what_fails_while_rows_are_counted_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    fails = rows(spark, 0, 100).withColumn("part", f.expr("CAST(raise_error('no such row') AS INT)"))
    with pytest.raises(JobFailed, match="no such row"):
        write(fails, tmp_path / "t")
    with pytest.raises(InvalidRequest, match="Hive's name for null"):
        write(rows(spark, 0, 9).withColumn("part", f.lit("__HIVE_DEFAULT_PARTITION__")), tmp_path / "u")
    assert sizes(tmp_path / "t") == sizes(tmp_path / "u") == {}


def test_progress_tells_what_was_written(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    result = write(rows(spark, 0, 3000), tmp_path / "t", progress=True)
    shown = capfd.readouterr().err
    done, known = shown.rpartition(" tasks, ")[0].split()[-1].split("/")
    assert done == known
    assert f"finished: {result.files} files, 3,000 rows" in shown
