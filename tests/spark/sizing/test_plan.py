"""A dry run beside the write of the same words: what it foretold comes true, and it changes nothing itself."""

import datetime as dt
from pathlib import Path
from typing import Any, assert_type

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import tallymark
from tallymark import ConflictError, InvalidRequest, SizingSettings, WritePlan, WriteResult
from tests.support.storage import data_files, tree

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


def rows(spark: SparkSession, *, count: int = 60, tasks: int = 4, months: int = 3) -> DataFrame:
    return spark.range(0, count, 1, tasks).selectExpr("id", f"CAST(id % {months} AS INT) AS month", "2013 AS year")


def planned(df: DataFrame, table: Path, mode: Any = "overwrite", **words: Any) -> WritePlan:
    before = tree(table) if table.exists() else None
    plan: WritePlan = tallymark.plan(df, str(table), mode=mode, **words)
    assert (tree(table) if table.exists() else None) == before, "a dry run changes nothing, and creates nothing"
    return plan


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Path:
    tallymark.write(rows(spark), str(tmp_path / "table"), mode="append", partition_by=["year", "month"])
    return tmp_path / "table"


def test_types_say_what_comes_back(spark: SparkSession, table: Path) -> None:
    df, url = rows(spark), str(table)
    assert_type(tallymark.plan(df, url, mode="append"), WritePlan)
    assert_type(tallymark.write(df, url, mode="append"), WriteResult)


@pytest.mark.parametrize(
    "words",
    [
        {"mode": "append"},
        {"mode": "overwrite", "partition_overwrite": "static"},
        {"mode": "overwrite", "partition_overwrite": "dynamic"},
        {"mode": "overwrite", "partition": {"year": 2013}},
        {"mode": "overwrite", "partition": {"year": 2013}, "partition_overwrite": "dynamic"},
    ],
    ids=str,
)
def test_the_write_does_what_its_dry_run_foretold(spark: SparkSession, table: Path, words: dict[str, Any]) -> None:
    before = data_files(table)
    df = rows(spark, months=5).where("month != 1")
    plan = planned(df, table, **words)
    result = tallymark.write(df, str(table), **words)
    after = data_files(table)
    assert {file.path for file in plan.removed} == before - after
    assert (plan.rows, plan.files) == (result.rows, result.files)
    came = {each.partition for each in plan.partitions if each.files}
    assert came == {path.rpartition("/")[0] for path in after - before}
    assert set(plan.new_partitions) == {"year=2013/month=3", "year=2013/month=4"}


@pytest.mark.smoke
def test_a_write_based_on_its_plan_takes_what_the_plan_named_and_no_more(spark: SparkSession, table: Path) -> None:
    words: dict[str, Any] = {"mode": "overwrite", "partition": {"year": 2013}}
    before = data_files(table)
    plan = planned(rows(spark), table, **words)
    tallymark.write(rows(spark, count=3), str(table), mode="append")
    came_between = data_files(table) - before
    tallymark.write(rows(spark), str(table), base=plan.position, **words)
    assert {file.path for file in plan.removed} == before
    assert data_files(table) & (before | came_between) == came_between
    with pytest.raises(ConflictError, match="overwritten since"):
        tallymark.write(rows(spark), str(table), base=plan.position, **words)


def test_the_plan_of_a_new_table_can_be_its_base_too(spark: SparkSession, tmp_path: Path) -> None:
    plan = planned(rows(spark), tmp_path / "new", partition_by=["month"])
    tallymark.write(rows(spark), str(tmp_path / "new"), mode="overwrite", partition_by=["month"], base=plan.position)
    with pytest.raises(ConflictError):
        tallymark.write(rows(spark), str(tmp_path / "new"), mode="overwrite", base=plan.position)


def test_columns_that_are_given_statically_may_be_missing(spark: SparkSession, table: Path) -> None:
    df = rows(spark)
    one = planned(df.where("month = 2").drop("year", "month"), table, partition={"year": 2013, "month": 2})
    assert [(each.partition, each.rows, each.change) for each in one.partitions] == [
        ("year=2013/month=2", 20, "replaced")
    ]
    several = planned(df.drop("year"), table, partition={"year": 2014})
    assert [(each.partition, each.rows) for each in several.partitions] == [
        (f"year=2014/month={month}", 20) for month in range(3)
    ]
    assert several.removed == ()


def test_a_table_that_is_not_there_is_planned_and_not_created(spark: SparkSession, tmp_path: Path) -> None:
    plan = planned(rows(spark), tmp_path / "new", "append", partition_by=["month"])
    assert (plan.is_created, plan.rows, plan.bytes, plan.files) == (True, 60, None, 12)
    assert not (tmp_path / "new").exists()


def test_partition_values_of_each_type_lead_to_the_paths_of_the_write(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame(
        [
            (1, "a/b", dt.date(2013, 1, 2), True),
            (2, "", dt.date(2013, 1, 3), False),
            (3, None, None, None),
        ],
        "id long, tail string, day date, flag boolean",
    ).withColumn("price", f.expr("CAST(id / 3 AS DECIMAL(5, 2))"))
    partition_by = ["tail", "day", "flag", "price"]
    plan = planned(df, tmp_path / "table", "append", partition_by=partition_by)
    tallymark.write(df, str(tmp_path / "table"), mode="append", partition_by=partition_by)
    written = {path.rpartition("/")[0] for path in data_files(tmp_path / "table")}
    assert {each.partition for each in plan.partitions} == written
    assert len(written) == 3


def test_a_table_without_partitions_has_a_file_for_each_task_with_rows(spark: SparkSession, tmp_path: Path) -> None:
    df = rows(spark, count=3, tasks=8)
    plan = planned(df, tmp_path / "flat", "append")
    result = tallymark.write(df, str(tmp_path / "flat"), mode="append")
    assert (plan.files, plan.rows) == (result.files, result.rows) == (3, 3)
    assert [each.partition for each in plan.partitions] == [""]


SIZED = SizingSettings(max_file_bytes=100_000, small_file_bytes=80_000)


def test_with_sizing_files_are_planned_as_the_write_then_plans_them(spark: SparkSession, tmp_path: Path) -> None:
    words: dict[str, Any] = {"partition_by": ["year", "month"], "partition": {"year": 2013}, "sizing": SIZED}
    table = tmp_path / "table"
    tallymark.write(rows(spark).drop("year"), str(table), mode="append", **words)
    before = data_files(table)
    for count in (60, 30):
        df = rows(spark, count=count, months=2).drop("year")
        plan = planned(df, table, "append", **words)
        result = tallymark.write(df, str(table), mode="append", **words)
        assert plan.sizing is not None
        assert result.sizing is not None
        assert (plan.rows, plan.files) == (result.rows, result.files)
        assert plan.sizing.bytes == result.sizing.planned_bytes
        assert {file.path for file in plan.sizing.fills} == before - data_files(table)
        before = data_files(table)


def test_sizing_of_a_table_that_is_not_there_is_planned_too(spark: SparkSession, tmp_path: Path) -> None:
    df = rows(spark).drop("year")
    words: dict[str, Any] = {"partition_by": ["year", "month"], "partition": {"year": 2013}, "sizing": SIZED}
    plan = planned(df, tmp_path / "new", "append", **words)
    assert (plan.rows, plan.files, plan.is_created) == (60, 3, True)
    assert "guessed" not in plan.estimate
    _same_sizes(plan, tallymark.write(df, str(tmp_path / "new"), mode="append", **words))


def test_an_overwrite_is_sized_by_a_sample_in_its_dry_run_too(spark: SparkSession, table: Path) -> None:
    words: dict[str, Any] = {"partition": {"year": 2013}, "sizing": SIZED}
    df = rows(spark, count=5000)
    _same_sizes(planned(df, table, **words), tallymark.write(df, str(table), mode="overwrite", **words))


def test_a_guard_refuses_rows_of_a_sized_dry_run(spark: SparkSession, table: Path) -> None:
    with pytest.raises(InvalidRequest, match="a row belongs to partition"):
        planned(rows(spark), table, "append", only_partitions={"year": 2013, "month": 1}, sizing=SIZED)
    with pytest.raises(InvalidRequest, match="a row has year=2013"):
        planned(rows(spark), table, "append", partition={"year": 2014}, sizing=SIZED)


def _same_sizes(plan: WritePlan, result: WriteResult) -> None:
    assert plan.sizing is not None
    assert result.sizing is not None
    assert (len(plan.sizing.files), plan.sizing.bytes) == (result.sizing.planned_files, result.sizing.planned_bytes)


def test_a_rerun_is_foretold_without_a_spark_job(spark: SparkSession, table: Path) -> None:
    tallymark.write(rows(spark), str(table), mode="append", txn="job:1")
    fails = rows(spark).withColumn("id", f.expr("CAST(raise_error('the rows were read') AS BIGINT)"))
    plan = planned(fails, table, "append", txn="job:1")
    assert (plan.committed_at, plan.partitions) == (2, ())


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"only_partitions": {"year": 2014}}, "replaces the whole table"),
        (
            {"only_partitions": {"year": 2013, "month": 1}, "partition_overwrite": "dynamic"},
            "a row belongs to partition",
        ),
        ({"partition": {"year": 2014}}, "a row has year=2013"),
        ({"partition": {"month": 1}}, "leaves out 'year'"),
        ({"partition_by": ["month"]}, "the table is partitioned by"),
    ],
    ids=str,
)
def test_a_dry_run_refuses_what_the_write_refuses(
    spark: SparkSession, table: Path, words: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidRequest, match=why):
        planned(rows(spark), table, **words)
    with pytest.raises(InvalidRequest, match=why):
        tallymark.write(rows(spark), str(table), mode="overwrite", **words)
