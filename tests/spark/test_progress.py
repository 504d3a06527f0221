"""What is shown while tasks run."""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from anyio.from_thread import start_blocking_portal
from pyspark import TaskContext
from pyspark.sql import SparkSession

import tallymark
from tallymark.engine.jobs.result import shown_bytes
from tallymark.engine.settings import MarkerKind
from tallymark.spark_glue.schema import arrow_schema
from tallymark.spark_glue.stage import run_tasks
from tallymark.spark_glue.written import Written

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.mark.parametrize("markers", ["batched", "direct"])
def test_progress_shows_what_finished_tasks_have_written_where_it_is_wanted(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str], markers: MarkerKind
) -> None:
    df = spark.range(1234).repartition(4)  # two tasks before, and four that write
    result = tallymark.write(df, str(tmp_path / "t"), mode="append", progress=True, markers=markers)
    shown = capfd.readouterr()
    marked = "direct" if markers == "direct" else f"{result.markers}"
    assert f"tallymark {result.instant}: 6/6 tasks, {marked} markers" in shown.err
    size = re.escape(shown_bytes(result.bytes))
    assert re.search(rf"finished: 4 files, 1,234 rows, {size}, [0-9.,]+ K?i?B/s", shown.err)
    assert shown.out == ""


@pytest.mark.parametrize("progress", [None, False])
def test_nothing_is_printed_where_there_is_no_terminal(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str], progress: bool | None
) -> None:
    tallymark.write(spark.range(100), str(tmp_path / "t"), mode="append", progress=progress)
    assert capfd.readouterr() == ("", "")


def test_a_result_shows_as_a_table_in_a_notebook(spark: SparkSession, tmp_path: Path) -> None:
    result = tallymark.write(spark.range(1234), str(tmp_path / "t"), mode="append")
    assert "<th style='text-align:left'>rows</th><td>1,234</td>" in result._repr_html_()


def test_a_task_that_failed_once_is_counted_once(spark: SparkSession, tmp_path: Path) -> None:
    def fail_first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        assert context is not None
        assert context.attemptNumber() > 0, "the first attempt fails when all is written"

    written = Written(spark)
    df = spark.range(100).mapInArrow(fail_first, "id long")
    with start_blocking_portal("trio") as portal:
        job = tallymark.open_table(tmp_path / "t").write(schema=arrow_schema(df.schema), mode="append")
        with portal.wrap_async_context_manager(job) as begun:
            reports = run_tasks(df, begun.ticket, written=written)
    assert written.so_far() == (2, 100, sum(file.bytes for report in reports for file in report.files))
