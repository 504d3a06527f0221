"""Predicates against Spark: hundreds of them as columns of one query over one Parquet file."""

from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pyspark.sql import DataFrame, SparkSession

from tallymark.engine.upsert.where import parse
from tests.support.examples import examples
from tests.support.predicates import COLUMNS, SCHEMA, Row, Where, batch_of, each_comparison, each_value, wheres
from tests.support.readers import spark_path

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


def drawn(count: int) -> list[str]:
    found: list[str] = []

    @given(wheres)
    @settings(max_examples=count, phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck))
    def collect(where: Where) -> None:
        found.append(where.sql)

    collect()
    return found


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return each_value()


@pytest.fixture(scope="module")
def table(spark: SparkSession, rows: list[Row], tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path: Path = tmp_path_factory.mktemp("where") / "rows.parquet"
    numbered = [{**row, "row": number} for number, row in enumerate(rows)]
    pq.write_table(pa.Table.from_pylist(numbered, schema=SCHEMA.append(pa.field("row", pa.int32()))), path)
    return spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(spark_path(path))


@pytest.fixture(params=[("true", "UTC"), ("false", "Asia/Tokyo")], ids=["ansi", "not-ansi"])
def mode(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    """The default of Spark 4, and that of Spark 3 in another time zone."""
    names = "spark.sql.ansi.enabled", "spark.sql.session.timeZone"
    before = [str(spark.conf.get(name)) for name in names]
    for name, value in zip(names, request.param, strict=True):
        spark.conf.set(name, value)
    yield
    for name, value in zip(names, before, strict=True):
        spark.conf.set(name, value)


def as_columns(table: DataFrame, wheres: list[str]) -> list[list[int]]:
    """The rows that Spark finds true, by predicate."""
    columns = (f"coalesce(({where}), false)" for where in wheres)
    found = table.selectExpr("row", *columns).orderBy("row").collect()
    return [[row[0] for row in found if row[number]] for number in range(1, len(wheres) + 1)]


def as_filters(table: DataFrame, wheres: list[str]) -> list[list[int]]:
    """The rows that Spark's scan returns, by predicate: it may evaluate some of it in Parquet."""
    filtered = [
        table.where(f"({where}) AND TRUE").selectExpr(f"{number} AS number", "row")  # alone, NULL is not a boolean
        for number, where in enumerate(wheres)
    ]
    found = sorted(reduce(DataFrame.union, filtered).collect())
    return [[row for number, row in found if number == each] for each in range(len(wheres))]


def ours(rows: list[Row], wheres: list[str]) -> list[list[int]]:
    batch = batch_of(rows)
    masks = [parse(where, SCHEMA).mask(batch).to_pylist() for where in wheres]
    return [[number for number, matches in enumerate(mask) if matches] for mask in masks]


def check(wheres: list[str], found: list[list[int]], wanted: list[list[int]]) -> None:
    differ = [(where, *both) for where, *both in zip(wheres, found, wanted, strict=True) if both[0] != both[1]]
    assert not differ, f"{len(differ)} differ: a where, the rows found and those wanted: {differ[:5]}"


@pytest.mark.usefixtures("mode")
def test_each_comparison_matches_the_rows_that_spark_finds(table: DataFrame, rows: list[Row]) -> None:
    lists = [
        f"{name} IN ({', '.join(typed[:count])})"
        for name, column in COLUMNS.items()
        for typed in [[sql for sql in column.literals if not (name in ("at", "local") and sql.startswith("'"))]]
        for count in (2, len(typed))  # Spark compiles short and long lists apart
    ]
    wheres = [*(where.sql for where in each_comparison()), *lists]
    check(wheres, ours(rows, wheres), as_columns(table, wheres))


@pytest.mark.usefixtures("mode")
def test_any_predicate_matches_the_rows_that_spark_finds(table: DataFrame, rows: list[Row]) -> None:
    wheres = drawn(examples(300))
    check(wheres, ours(rows, wheres), as_columns(table, wheres))
    canonical = [str(parse(where, SCHEMA)) for where in wheres]
    check(wheres, ours(rows, wheres), as_columns(table, canonical))


@pytest.mark.usefixtures("mode")
def test_a_delete_by_where_is_of_the_rows_that_spark_would_filter(table: DataFrame, rows: list[Row]) -> None:
    wheres = drawn(40)
    check(wheres, ours(rows, wheres), as_filters(table, wheres))


@pytest.mark.usefixtures("mode")
def test_sparks_answer_differently_what_is_refused_for_that(spark: SparkSession) -> None:
    is_ansi = spark.conf.get("spark.sql.ansi.enabled") == "true"
    answers = {
        r"'a\'b' || 'a\\b'": r"a'ba\b",
        "'a''b'": "ab" if spark.version < "4" else "a'b",
        "cast(16777216 AS float) = 16777217": not is_ansi,
        "TIMESTAMP '2024-02-29 12:00:00Z' IN ('2024-02-29 12:00:00Z')": is_ansi,
        "cast('1.0000000000000000000000001' AS decimal(38, 25)) IN (3000000000, 1)": spark.version >= "4",
    }
    (row,) = spark.sql(f"SELECT {', '.join(answers)}").collect()
    assert list(row) == list(answers.values())
