"""What a nightly Spark job may get wrong: one error with the input, the rule and the remedy, and nothing changes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import tallymark
from tallymark import InvalidRequest
from tests.support.storage import files, tree

pytestmark = pytest.mark.spark

YEAR = {"year": 2013}
ROWS = "flight long, year int, month int"
TXN = "load:1"

CALLS: dict[str, tuple[dict[str, Any], tuple[str, str, str]]] = {
    "a static value of another type": (
        {"mode": "overwrite", "partition": {"year": "2013"}},
        ("partition={'year': '2013'}", "column 'year' is int32, and '2013' is a str", "give an int"),
    ),
    "static names that are no prefix": (
        {"mode": "overwrite", "partition": {"month": 1}},
        ("partition={'month': 1}", "leaves out 'year'; the table is partitioned by", "name the first of these"),
    ),
    "more than the guard allows": (
        {"mode": "overwrite", "only_partitions": YEAR},
        ("only_partitions=[{'year': 2013}]", "replaces the whole table", "or allow more"),
    ),
    "a txn that named another write": (
        {"mode": "overwrite", "txn": TXN},
        (f"txn={TXN!r}", "was committed at position 1 (instant ", "give this one a txn of its own"),
    ),
    "a base that the log has not reached": (
        {"mode": "overwrite", "base": 9},
        ("base=9", "the log ends at position 2", "give one at which this table was read"),
    ),
    "a table that is not in the catalog": (
        {"mode": "append", "catalog_table": "default.flights"},
        ("catalog_table='default.flights'", "is not in Spark's catalog", "CREATE TABLE `default`.`flights` ("),
    ),
    "a database that is not in the catalog": (
        {"mode": "append", "catalog_table": "nobodys.flights"},
        ("catalog_table='nobodys.flights'", "is not in Spark's catalog", "CREATE TABLE `nobodys`.`flights` ("),
    ),
}


def frame(spark: SparkSession, *rows: tuple[int, int, int]) -> DataFrame:
    return spark.createDataFrame(rows, ROWS).coalesce(1)


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two commits, the second of which has replaced all of the first. No test here changes it but by an entry."""
    path = tmp_path_factory.mktemp("bad") / "table"
    old = frame(spark, (1, 2013, 1), (2, 2014, 1))
    tallymark.write(old, str(path), mode="append", partition_by=["year", "month"], txn=TXN)
    tallymark.write(old, str(path), mode="overwrite")
    return path


def refused(parts: tuple[str, ...], call: Callable[[], object]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        call()
    assert type(caught.value) is InvalidRequest
    assert all(part in str(caught.value) for part in parts), str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("case", CALLS)
def test_a_call_that_cannot_be_is_refused_and_nothing_changes(spark: SparkSession, table: Path, case: str) -> None:
    keywords, parts = CALLS[case]
    before = tree(table)
    refused(parts, lambda: tallymark.write(frame(spark, (9, 2013, 1)), str(table), **keywords))
    assert tree(table) == before


@pytest.mark.parametrize("case", ["default.flights", "nobodys.flights"])
def test_a_new_table_is_not_made_for_a_catalog_that_does_not_know_it(
    spark: SparkSession, tmp_path: Path, case: str
) -> None:
    df = frame(spark, (9, 2013, 1))
    refused(
        ("is not in Spark's catalog", "make one: CREATE TABLE"),
        lambda: tallymark.write(df, str(tmp_path / "new"), mode="append", catalog_table=case),
    )
    assert list(tmp_path.iterdir()) == []


def test_an_as_of_whose_files_are_gone_is_refused_and_nothing_changes(spark: SparkSession, table: Path) -> None:
    before = tree(table)
    refused(
        ("as_of=1", "is deleted at once", "give position 2 or a later one"),
        lambda: tallymark.read(spark, str(table), as_of=1),
    )
    assert tree(table) == before


@pytest.mark.parametrize("named", ["only_partitions", "partition"])
def test_a_row_that_breaks_out_ends_the_job_and_no_more_than_that_stands_in_the_log(
    spark: SparkSession, table: Path, named: str
) -> None:
    before = tree(table)
    stray: dict[str, Any] = {"mode": "overwrite", "partition_overwrite": "dynamic", named: YEAR}
    refused(
        (f"{named}=", "year=2014", "drop such rows"),
        lambda: tallymark.write(frame(spark, (9, 2013, 1), (10, 2014, 7)), str(table), **stray),
    )
    after = tree(table)
    assert {name: after[name] for name in before} == before
    assert [name.rpartition("/")[0] for name in files(table) - before.keys()] == [".hoodie/.tallymark/log"]
