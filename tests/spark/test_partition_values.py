"""Partition values of every kind: the paths are those of Spark's own writer, and every reader gets the values back."""

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import tallymark
from tallymark import InvalidRequest
from tests.support.readers import nullable, plainly, read_by_duckdb, read_by_hudi, spark_path, to_arrow
from tests.support.storage import data_files, exactly_the_committed_files

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

TEXTS = (
    None, "", "plain", "ünïcødé", "日本", "🦆", "a/b", "a=b", "50%", "%2F", "a b", " ", " lead", "trail ",
    "01", "1", "-1", "1e3", "true", "null", "NULL", "2024-02-29", "a:b", "a'b", 'a"b', "a#b?c", "a*b", "a\\b",
    "{x}", "[x]", "^", "a\tb", "a\nb", "a+b", "a&b", "~", ".", "..", "_x", "x" * 200,
)  # fmt: skip

KINDS: dict[str, Sequence[object]] = {
    "string": TEXTS,
    "byte": (None, -128, 0, 127),
    "short": (None, -32768, 1),
    "int": (None, -1, 0, 2013),
    "long": (None, -(2**63), 2**63 - 1),
    "boolean": (None, True, False),
    "date": (None, dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(9999, 12, 31)),
    "decimal(10,2)": (None, Decimal("0.00"), Decimal("-1.50"), Decimal("12345678.90")),
    "decimal(38,10)": (None, Decimal("0.0000000000"), Decimal("0.0000000001")),
}


def rows(spark: SparkSession, kind: str) -> DataFrame:
    return spark.createDataFrame(list(enumerate(KINDS[kind])), f"id int, part {kind}").coalesce(1)


def directories(names: set[str]) -> set[str]:
    return {name.rpartition("/")[0] for name in names}


def values(table: pa.Table, schema: pa.Schema) -> list[dict[str, object]]:
    """By id, with null for the empty string: in a path they are one."""
    found = pa.table({field.name: table.column(field.name).cast(field.type) for field in schema}).sort_by("id")
    return [{name: None if value == "" else value for name, value in row.items()} for row in found.to_pylist()]


@pytest.mark.parametrize("kind", KINDS)
def test_paths_are_those_of_sparks_writer_and_values_come_back(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    df, ours, native = rows(spark, kind), tmp_path / "ours", tmp_path / "native"
    tallymark.write(df, str(ours), mode="append", partition_by=["part"])
    df.write.partitionBy("part").parquet(str(native))
    written = directories(exactly_the_committed_files(ours))
    if not (spark.version < "4" and kind == "decimal(38,10)"):  # where Spark 3.5 writes 1E-10, as Java prints it
        assert written == directories(data_files(native))

    schema = nullable(df)
    wanted = values(to_arrow(df), schema)
    declared = plainly(spark).schema(df.schema).parquet(spark_path(ours))
    assert values(to_arrow(declared), schema) == wanted
    assert values(to_arrow(tallymark.read(spark, str(ours))), schema) == wanted
    assert values(read_by_duckdb(spark, ours), schema) == wanted
    assert values(read_by_hudi(spark, ours), schema) == wanted


def test_nested_partitions_are_nested_directories_in_the_order_given(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame([(1, "a/b", None), (2, None, 7)], "id int, name string, number int")
    tallymark.write(df, str(tmp_path / "t"), mode="append", partition_by=["number", "name"])
    assert directories(exactly_the_committed_files(tmp_path / "t")) == {
        "number=__HIVE_DEFAULT_PARTITION__/name=a%2Fb",
        "number=7/name=__HIVE_DEFAULT_PARTITION__",
    }
    assert sorted(tallymark.read(spark, str(tmp_path / "t")).collect()) == sorted(df.collect())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("__HIVE_DEFAULT_PARTITION__", "Hive's name for null; write null"),
        ("x" * 300, "longer than 255 bytes"),
    ],
)
def test_a_value_that_no_path_can_carry_is_refused_by_name(
    spark: SparkSession, tmp_path: Path, value: str, message: str
) -> None:
    df = spark.createDataFrame([(1, value)], "id int, part string")
    with pytest.raises(InvalidRequest, match=f"partition column 'part'.*{message}"):
        tallymark.write(df, str(tmp_path / "t"), mode="append", partition_by=["part"])
    assert exactly_the_committed_files(tmp_path / "t") == set()


@pytest.mark.parametrize(
    "name", ["with space", "[brackets]", "{a,b}", "50%", "%41", "ünïcødé 🦆", "a#b", "a?b*c", "a=b", "quote's", "a\\b"]
)
def test_a_table_may_lie_under_a_folder_of_any_name(spark: SparkSession, tmp_path: Path, name: str) -> None:
    df = spark.createDataFrame([(1, "a b"), (2, None)], "id int, part string").coalesce(1)
    for url in (str(tmp_path / name / "plain"), (tmp_path / name / "url").as_uri()):
        tallymark.write(df, url, mode="append", partition_by=["part"])
        assert sorted(tallymark.read(spark, url).collect()) == sorted(df.collect())
    for table in ("plain", "url"):
        assert len(exactly_the_committed_files(tmp_path / name / table)) == 2
