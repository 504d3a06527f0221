"""``tallymark.read`` gives back what was written: the schema to the last flag, the rows, and a native scan."""

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import types as t

import tallymark
from tests.support.readers import assert_readers_agree, plainly
from tests.support.storage import exactly_the_committed_files

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

LARGE_STRINGS = "spark.sql.execution.arrow.useLargeVarTypes"
NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 123456)  # noqa: DTZ001

EVERY_TYPE: Sequence[tuple[str, t.DataType, object]] = (
    ("yes", t.BooleanType(), True),
    ("tiny", t.ByteType(), -128),
    ("small", t.ShortType(), -32768),
    ("whole", t.IntegerType(), -(2**31)),
    ("big", t.LongType(), 2**63 - 1),
    ("real", t.FloatType(), 0.5),
    ("exact", t.DoubleType(), -1e300),
    ("money", t.DecimalType(9, 2), Decimal("-1234567.89")),
    ("huge", t.DecimalType(38, 18), Decimal("1.000000000000000001")),
    ("text", t.StringType(), "ünïcødé"),
    ("blob", t.BinaryType(), bytearray(b"\x00\xff")),
    ("day", t.DateType(), dt.date(1582, 10, 15)),
    ("moment", t.TimestampType(), NOON),
    ("wall", t.TimestampNTZType(), NOON),
    ("some", t.ArrayType(t.IntegerType(), containsNull=True), [1, None]),
    ("full", t.ArrayType(t.StringType(), containsNull=False), ["a"]),
    ("loose", t.MapType(t.StringType(), t.LongType(), valueContainsNull=True), {"a": None}),
    ("tight", t.MapType(t.StringType(), t.DateType(), valueContainsNull=False), {"a": dt.date(2024, 1, 1)}),
    (
        "deep",
        t.StructType(
            [
                t.StructField("sure", t.IntegerType(), nullable=False),
                t.StructField("rest", t.ArrayType(t.StructType([t.StructField("x", t.DecimalType(4, 1))]))),
            ]
        ),
        Row(sure=1, rest=[Row(x=Decimal("1.5")), None]),
    ),
)


@pytest.fixture(scope="module")
def every_type(spark: SparkSession) -> DataFrame:
    """Each type twice, once required and once nullable, with a row of values and a row with every null that may be."""
    schema = t.StructType()
    for name, type_, _ in EVERY_TYPE:
        schema.add(f"{name}_required", type_, nullable=False, metadata={"comment": f"a {name}"})
        schema.add(name, type_, nullable=True)
    given = tuple(value for *_, value in EVERY_TYPE for _ in range(2))
    nulls = tuple(value for *_, one in EVERY_TYPE for value in (one, None))
    return spark.createDataFrame([given, nulls], schema).coalesce(1)


@pytest.mark.parametrize(("is_large", "partition_by"), [("false", []), ("true", ["text"])])
def test_every_type_comes_back_with_its_nullability_and_metadata(
    every_type: DataFrame, tmp_path: Path, is_large: str, partition_by: list[str]
) -> None:
    """Also where Spark delivers large strings."""
    spark = every_type.sparkSession
    spark.conf.set(LARGE_STRINGS, is_large)
    try:
        tallymark.write(every_type, str(tmp_path / "t"), mode="append", partition_by=partition_by)
    finally:
        spark.conf.unset(LARGE_STRINGS)
    back = tallymark.read(spark, str(tmp_path / "t"))
    assert back.schema == every_type.schema
    assert back.schema.json() == every_type.schema.json()
    assert sorted(back.collect(), key=repr) == sorted(every_type.collect(), key=repr)


@pytest.mark.smoke
def test_four_readers_see_the_same_values_of_every_type(every_type: DataFrame, tmp_path: Path) -> None:
    tallymark.write(every_type, str(tmp_path / "t"), mode="append", partition_by=["text"])
    exactly_the_committed_files(tmp_path / "t")
    assert assert_readers_agree(every_type.sparkSession, tmp_path / "t", every_type) == 2


def test_char_and_varchar_come_back_as_what_they_were(spark: SparkSession, tmp_path: Path) -> None:
    schema = t.StructType()
    schema.add("code", t.StringType(), metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"})
    schema.add("label", t.StringType(), metadata={"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"})
    df = spark.createDataFrame([("ab ", "cd")], schema)
    tallymark.write(df, str(tmp_path / "t"), mode="append")
    back = tallymark.read(spark, str(tmp_path / "t"))
    assert back.schema.json() == df.schema.json()
    assert back.collect() == df.collect()


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kathmandu"])
def test_a_moment_stays_the_same_moment_whatever_the_sessions_time_zone(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    said = ["0001-01-03 00:00:00Z", "1883-11-18 17:00:00Z", "1969-12-31 23:59:59.999999Z", "2024-11-03 05:30:00Z"]
    df = spark.createDataFrame([(text,) for text in said], "said string").selectExpr(
        "said", "timestamp(said) AS moment", "to_timestamp_ntz(left(said, 19)) AS wall"
    )
    check = ["said", "unix_micros(moment) AS micros", "string(wall) AS wall"]
    expected = sorted(df.selectExpr(*check).collect())
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        tallymark.write(df, str(tmp_path / "t"), mode="append")
        found = tallymark.read(spark, str(tmp_path / "t")).selectExpr(*check).collect()
        plain = plainly(spark).parquet(str(tmp_path / "t")).selectExpr(*check).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert sorted(found) == sorted(plain) == expected


def test_an_empty_dataframe_makes_an_empty_table_of_its_schema(every_type: DataFrame, tmp_path: Path) -> None:
    spark = every_type.sparkSession
    result = tallymark.write(every_type.limit(0), str(tmp_path / "t"), mode="append")
    assert (result.rows, result.files) == (0, 0)
    back = tallymark.read(spark, str(tmp_path / "t"))
    assert back.schema == every_type.schema
    assert back.collect() == []


def test_columns_are_matched_by_name_and_come_back_in_the_tables_order(spark: SparkSession, tmp_path: Path) -> None:
    first = spark.createDataFrame([(1, "a")], "id int, name string")
    second = spark.createDataFrame([("b", 2)], "name string, id int")
    for df in (first, second):
        tallymark.write(df, str(tmp_path / "t"), mode="append")
    assert sorted(tallymark.read(spark, str(tmp_path / "t")).collect()) == [Row(id=1, name="a"), Row(id=2, name="b")]


@pytest.mark.smoke
def test_a_read_is_a_native_scan_that_pushes_filters_and_columns_down(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(100).selectExpr("id", "id % 2 AS part", "string(id) AS text")
    tallymark.write(df, str(tmp_path / "t"), mode="append", partition_by=["part"])
    found = tallymark.read(spark, str(tmp_path / "t")).where("id > 90 AND part = 1").select("id")
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "FileScan parquet" in plan
    assert "GreaterThan(id,90)" in plan.partition("PushedFilters")[2]
    assert "text" not in plan.partition("ReadSchema")[2]
    assert sorted(row.id for row in found.collect()) == [91, 93, 95, 97, 99]


def test_a_read_holds_its_snapshot_against_later_appends(spark: SparkSession, tmp_path: Path) -> None:
    tallymark.write(spark.range(10), str(tmp_path / "t"), mode="append")
    before = tallymark.read(spark, str(tmp_path / "t"))
    tallymark.write(spark.range(10), str(tmp_path / "t"), mode="append")
    assert before.count() == 10
    assert tallymark.read(spark, str(tmp_path / "t")).count() == 20


def test_a_read_can_be_joined_with_itself_and_written_back(spark: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    tallymark.write(spark.range(10).selectExpr("id", "id + 1 AS next"), url, mode="append")
    table = tallymark.read(spark, url)
    assert table.join(table.withColumnRenamed("next", "after"), "id").count() == 10
    result = tallymark.write(table.where("id < 5"), url, mode="overwrite")
    assert result.rows == 5
    assert tallymark.read(spark, url).count() == 5
