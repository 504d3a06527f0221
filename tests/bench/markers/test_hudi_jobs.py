from importlib.metadata import PackageNotFoundError

import pyspark
import pytest

from tallymark.bench.markers import hudi_jobs
from tallymark.bench.peers.timeline_server import HUDI_JARS
from tallymark.bench.stores import near
from tests.support.jars import java

INSERT = hudi_jobs.Insert(partitions=3, tasks=4, rows_per_file=5)


@pytest.mark.parametrize(
    ("spark", "java_home", "reason"),
    [
        ("3.5.9", "", "need a Java"),
        ("4.3.0", "/usr", "is for Spark 3.5.*, and this is 4.3.0"),
        (None, "/usr", "need PySpark 3.5.*, and there is none"),
    ],
)
def test_whole_jobs_are_left_out_without_spark_3_5_or_a_java(tmp_path, monkeypatch, spark, java_home, reason):
    def version(name: str) -> object:
        if spark is None:
            raise PackageNotFoundError(name)
        return spark

    monkeypatch.setattr(hudi_jobs, "version", version)
    monkeypatch.setenv("JAVA_HOME", java_home)
    monkeypatch.setenv("PATH", "/no/such/folder")
    with near(tmp_path) as store:
        [table] = hudi_jobs.job_tables(store, INSERT, 1, tmp_path, lambda text: None)
    assert table.rows == []
    assert reason in table.absent["whole jobs of Hudi"]


def job(wall_s, driver_s, service_s):
    return hudi_jobs.Job(
        files=4, wall_s=wall_s, driver_s=driver_s, executors_s=1.0, service_s=service_s, puts=4, marker_bytes=9, left=0
    )


def test_a_row_has_medians_and_ratios_within_rounds():
    embedded = [job(10.0, 4.0, None), job(20.0, 8.0, None), job(60.0, 4.0, None)]
    side = hudi_jobs.JobSide("serve", "serve", {}, 1)
    found = hudi_jobs.row(side, [job(5.0, 2.0, 0.1), job(20.0, 4.0, 0.3), job(6.0, 1.0, 0.2)], embedded)
    assert (found.wall_s, found.driver_s, found.service_s) == (6.0, 2.0, 0.2)
    assert (found.wall_ratio.low, found.wall_ratio.value, found.wall_ratio.high) == (0.1, 0.5, 1.0)
    assert found.driver_ratio.value == 0.5


@pytest.mark.spark
@pytest.mark.every_spark
@pytest.mark.slow
@pytest.mark.skipif(not pyspark.__version__.startswith("3.5."), reason=f"{HUDI_JARS[0]} is for Spark 3.5")
def test_the_same_insert_leaves_the_same_files_and_no_marker_on_every_side(tmp_path):
    java()
    (tmp_path / "logs").mkdir()
    with near(tmp_path) as store:
        [table] = hudi_jobs.job_tables(store, INSERT, 1, tmp_path / "logs", lambda text: None)
    rows = {row.side: row for row in table.rows}
    assert ([*rows], table.absent) == (["embedded", "standalone", "direct", "serve"], {})
    assert {(row.files, row.left) for row in table.rows} == {(INSERT.files, 0)}
    assert (rows["direct"].puts, rows["direct"].marker_bytes) == (INSERT.files, 0)
    for name in ("embedded", "standalone", "serve"):
        assert rows[name].puts > 0
        assert rows[name].marker_bytes > 60 * INSERT.files, "each marker is written at least once"
    assert {name for name, row in rows.items() if row.service_s is not None} == {"standalone", "serve"}
    assert rows["embedded"].wall_ratio.value == 1
