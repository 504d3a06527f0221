"""A scan that takes its time: under a lease it finds its files, whatever is overwritten and cleaned meanwhile."""

import threading
import time
from pathlib import Path

import anyio
import pytest
from pyspark.sql import DataFrame, SparkSession

import tallymark

pytestmark = pytest.mark.spark


def rows(spark: SparkSession, version: int) -> DataFrame:
    return spark.range(6).selectExpr("id", f"{version} AS version", "id % 2 AS part")


def clean(url: str) -> int:
    async def main() -> int:
        return (await tallymark.open_table(url).clean(retain_hours=0)).files

    return anyio.run(main, backend="trio")


def leases(folder: Path) -> list[Path]:
    return sorted((folder / ".hoodie/.tallymark/read").glob("*"))


def test_a_scan_under_a_lease_outlasts_overwrites_and_cleans(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "table"
    tallymark.write(rows(spark, 1), str(folder), mode="append", partition_by=["part"], readers="table", retain_hours=0)
    with tallymark.reading(spark, folder) as flights:
        tallymark.write(rows(spark, 2), str(folder), mode="overwrite")
        tallymark.write(rows(spark, 3), str(folder), mode="overwrite")
        with tallymark.reading(spark, folder, as_of=2) as second:
            assert clean(str(folder)) == 0
            assert {row.version for row in flights.select("version").collect()} == {1}
            assert {row.version for row in second.select("version").collect()} == {2}
            assert len(leases(folder)) == 2
    assert leases(folder) == []
    assert clean(str(folder)) > 0
    assert {row.version for row in tallymark.read(spark, folder).select("version").collect()} == {3}


def test_the_lease_is_renewed_while_the_block_computes(spark: SparkSession, tmp_path: Path, monkeypatch) -> None:
    folder = tmp_path / "table"
    tallymark.write(rows(spark, 1), str(folder), mode="append", readers="table")
    monkeypatch.setattr("tallymark.spark_glue.read.open_table", _often_renewed)
    with tallymark.reading(spark, folder):
        (lease,) = leases(folder)
        first = lease.stat().st_mtime_ns
        deadline = time.monotonic() + 30
        while lease.stat().st_mtime_ns == first:
            assert time.monotonic() < deadline, "no beat"
            threading.Event().wait(0.05)


def _often_renewed(url, **named):
    return tallymark.open_table(url, lease=tallymark.LeaseSettings(heartbeat_interval_s=0.1, expiry_s=60), **named)


def test_a_block_that_fails_gives_its_lease_up(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "table"
    tallymark.write(rows(spark, 1), str(folder), mode="append", readers="table")
    with pytest.raises(KeyError, match="a query of mine"), tallymark.reading(spark, folder):
        raise KeyError("a query of mine")
    assert leases(folder) == []


def test_a_directory_table_holds_nothing_for_readers_and_says_so(spark: SparkSession, tmp_path: Path) -> None:
    tallymark.write(rows(spark, 1), str(tmp_path / "table"), mode="append")
    with (
        pytest.raises(tallymark.InvalidRequest, match=r"no lease can hold them.*readers='table'"),
        tallymark.reading(spark, tmp_path / "table"),
    ):
        pass
