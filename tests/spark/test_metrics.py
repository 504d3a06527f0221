"""What a scrape of Spark's driver finds."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tallymark
from tests.support.scrape import scraping

pytestmark = pytest.mark.spark
pytest.importorskip("prometheus_client", reason="needs the extra [prometheus]")


def test_a_write_is_seen_in_the_driver_with_its_tasks_markers_and_acks(spark: SparkSession, tmp_path: Path) -> None:
    with scraping() as scrape:
        before = scrape()
        result = tallymark.write(spark.range(1234).repartition(4), str(tmp_path / "t"), mode="append")
        seen = scrape().since(before)
    assert seen.value("jobs_total", operation="append", outcome="committed") == 1
    assert seen.value("tasks_total") == 4
    assert seen.value("committed_rows_total") == result.rows == 1234
    assert seen.value("committed_bytes_total") == result.bytes
    assert seen.value("markers_total", kind="batched") == result.markers >= 4
    assert seen.value("marker_ack_seconds_count") > 0
    assert seen.value("task_seconds_total") > 0
