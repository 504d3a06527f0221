"""The line on the terminal."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tallymark

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


def test_progress_shows_tasks_and_markers_where_it_is_wanted(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    result = tallymark.write(spark.range(100), str(tmp_path / "t"), mode="append", progress=True)
    shown = capfd.readouterr()
    assert f"tallymark {result.instant}" in shown.err
    assert f"2/2 tasks, {result.markers} markers" in shown.err
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
