"""Which rows go to which task: each once, by the row and the plan alone."""

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tallymark.engine.sizing.plan import PlannedFile
from tallymark.spark_glue.profile import Profile, profiled
from tallymark.spark_glue.routing import Tasks, keyed, routed
from tallymark.spark_glue.task_key import task_key
from tests.spark.sizing.test_profile import ticket_for

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

TASKS = 7


def rows(spark: SparkSession, count: int = 12_000) -> DataFrame:
    """Of three partitions: a half, a third and a sixth of the rows."""
    return spark.range(0, count, 1, 4).selectExpr(
        "id", "CAST(id AS STRING) AS name", "ARRAY(0,0,0,1,1,2)[id % 6] AS part"
    )


def tasks_for(profile: Profile, *, count: int = TASKS) -> Tasks:
    """Each partition has a file in each task, of which the n-th gets n + 1 shares; but the first one has one."""
    tasks: list[list[PlannedFile]] = [[] for _ in range(count)]
    for number, incoming in enumerate(profile.incoming):
        places = [0] if number == 0 else range(count)
        whole = sum(place + 1 for place in places)
        for place in places:
            tasks[place].append(PlannedFile(incoming.partition, incoming.rows * (place + 1) // whole, 1000))
    return tasks


def placed(df: DataFrame, by: Sequence[str] = ("part",)) -> Counter[tuple[int, ...]]:
    """Rows by task and partition."""
    tasks = df.groupBy(f.spark_partition_id().alias("task"), *by).count().collect()
    return Counter({(row.task, *(row[name] for name in by)): row["count"] for row in tasks})


@contextmanager
def session_conf(spark: SparkSession, conf: dict[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key) or "" for key in conf}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


@pytest.fixture
def profile(spark: SparkSession, tmp_path: Path) -> Profile:
    df = rows(spark)
    return profiled(df, ticket_for(df, tmp_path / "t", ["part"]))


def test_a_key_leads_to_its_task(spark: SparkSession) -> None:
    numbers = [*range(1000), 2**31 - 1]
    keys = spark.createDataFrame([(number, task_key(number)) for number in numbers], "task int, key int")
    assert keys.where("hash(key) != task").count() == 0
    found = keys.where("task < 1000").repartition(1000, "key").where(f.spark_partition_id() == f.col("task"))
    assert found.count() == 1000


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("threshold", ["-1", "10485760"])
def test_rows_go_where_they_are_planned_whatever_the_session_says(
    spark: SparkSession, profile: Profile, adaptive: str, threshold: str
) -> None:
    df, tasks = rows(spark), tasks_for(profile)
    conf = {"spark.sql.adaptive.enabled": adaptive, "spark.sql.autoBroadcastJoinThreshold": threshold}
    with session_conf(spark, conf):
        sent = routed(df, tasks, profile.paths, ["part"])
        assert sent.rdd.getNumPartitions() == TASKS
        found = placed(sent)
        assert sorted(sent.collect()) == sorted(df.collect())
    for task, files in enumerate(tasks):
        for file in files:
            part = int(file.partition.removeprefix("part="))
            assert found.pop((task, part)) == pytest.approx(file.rows, abs=5 * file.rows**0.5)
    assert not found


def test_equal_rows_get_equal_keys_in_whatever_order_they_come(spark: SparkSession, profile: Profile) -> None:
    tasks = tasks_for(profile)
    first = keyed(rows(spark), tasks, profile.paths, ["part"])
    again = keyed(rows(spark).orderBy(f.rand(3)).repartition(5), tasks, profile.paths, ["part"])
    assert first.exceptAll(again).count() == 0
    assert first.count() == again.count() == 12_000


def test_rows_of_partitions_that_nobody_planned_stay_together(spark: SparkSession, profile: Profile) -> None:
    more = rows(spark).unionAll(rows(spark, 600).selectExpr("id", "name", "CAST(id % 5 + 100 AS INT) AS part"))
    found = placed(routed(more, tasks_for(profile), profile.paths, ["part"]))
    unplanned = {place: count for place, count in found.items() if place[1] >= 100}
    assert sorted((part, count) for (_, part), count in unplanned.items()) == [(part, 120) for part in range(100, 105)]
    assert sum(found.values()) == 12_600


def test_equal_rows_go_to_one_task_and_others_spread(spark: SparkSession, tmp_path: Path) -> None:
    same = spark.range(1000).selectExpr("CAST(1 AS LONG) AS id", "'x' AS name", "7 AS part")
    df = same.unionAll(rows(spark).withColumn("part", f.lit(7)))
    profile = profiled(df, ticket_for(df, tmp_path / "t", ["part"]))
    (incoming,) = profile.incoming
    tasks = [[PlannedFile(incoming.partition, incoming.rows // TASKS, 1)] for _ in range(TASKS)]
    found = placed(routed(df, tasks, profile.paths, ["part"]))
    assert sum(found.values()) == 13_000
    *others, most = sorted(found.values())
    assert most == pytest.approx(12_000 / TASKS + 1000, rel=0.15)
    assert others == pytest.approx([12_000 / TASKS] * (TASKS - 1), rel=0.15)


@pytest.mark.parametrize("partition_by", [[], ["name", "price"]], ids=str)
def test_rows_of_every_kind_arrive_as_they_are(spark: SparkSession, tmp_path: Path, partition_by: list[str]) -> None:
    at = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
    values = [
        (1, "ünïcødé", 0.0, Decimal("1.50"), at, b"\x00", {"k": 1}, [["a", None]], (1, "x"), True),
        (2, "", -0.0, None, None, None, None, None, None, None),
        (3, None, float("nan"), Decimal("-1.00"), at, b"", {}, [], (None, None), False),
        (4, "a/b", float("inf"), Decimal("-1.00"), at, b"x", {"k": None, "l": 2}, [None], (2, ""), False),
    ] * 5  # fmt: skip
    kinds = (
        "id long, name string, f double, price decimal(7,2), at timestamp, raw binary, m map<string,int>, "
        "l array<array<string>>, s struct<a: int, b: string>, ok boolean"
    )
    df = spark.createDataFrame(values, kinds).withColumn("local", f.col("at").cast("timestamp_ntz"))
    profile = profiled(df, ticket_for(df, tmp_path / "t", partition_by))
    tasks: list[list[PlannedFile]] = [[] for _ in range(3)]
    for number, incoming in enumerate(profile.incoming):
        tasks[number % 3].append(PlannedFile(incoming.partition, incoming.rows, 1))
    if not partition_by:
        tasks = [[PlannedFile("", 7, 1)] for _ in range(3)]
    sent = routed(df, tasks, profile.paths, partition_by)
    assert sent.schema == df.schema
    assert sorted(map(repr, sent.collect())) == sorted(map(repr, df.collect()))


def test_a_table_of_maps_alone_goes_to_one_task(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(100).selectExpr("MAP('k', id) AS m")
    profile = profiled(df, ticket_for(df, tmp_path / "t", []))
    sent = routed(df, [[PlannedFile("", 50, 1)], [PlannedFile("", 50, 1)]], profile.paths, [])
    assert list(placed(sent, ()).values()) == [100]


def test_ten_thousand_partitions_are_planned_at_once(spark: SparkSession) -> None:
    df = spark.range(0, 20_000, 1, 2).selectExpr("id", "CAST(id % 10000 AS INT) AS part")
    hashes = {
        row.hash: f"part={row.part}" for row in df.selectExpr("part", "xxhash64(part, part IS NULL) AS hash").collect()
    }
    tasks = [[PlannedFile(f"part={part}", 2, 1) for part in range(task, 10_000, 40)] for task in range(40)]
    found = placed(routed(df, tasks, hashes, ["part"]))
    assert found == {(part % 40, part): 2 for part in range(10_000)}
