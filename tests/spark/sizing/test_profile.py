"""Rows and bytes by partition, counted by Spark as the engine counts them."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from anyio.from_thread import start_blocking_portal
from pyspark.sql import DataFrame, SparkSession

import tallymark
from tallymark import InvalidRequest
from tallymark.engine.arrow.plain_size import plain_bytes
from tallymark.engine.tasks.table_rows import table_rows
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.spark_glue.profile import Profile, profiled
from tallymark.spark_glue.schema import arrow_schema
from tests.support.readers import to_arrow

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

ODD = (
    "id long, tail string, raw binary, day date, at timestamp, price decimal(7,2), ok boolean, f double, "
    "l array<string>"
)


def odd_rows(spark: SparkSession) -> DataFrame:
    day, at = dt.date(2013, 1, 1), dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
    return spark.createDataFrame(
        [
            (1, "ünïcødé 🦆", b"\x00\xff", day, at, Decimal("1.50"), True, float("nan"), ["a", None]),
            (2, "", b"", None, None, None, None, None, None),
            (3, None, None, day, at, Decimal("-1.00"), False, -0.0, []),
            (4, "", b"abc", day, at, Decimal("-1.00"), False, 0.0, ["long " * 50]),
        ],
        ODD,
    )


def ticket_for(
    df: DataFrame, url: Path, partition_by: list[str], partition: dict[str, Any] | None = None
) -> WriteTicket:
    """That of a job which is then rolled back."""
    with start_blocking_portal("trio") as portal:
        job = tallymark.open_table(url).write(
            schema=arrow_schema(df.schema, partition), mode="append", partition_by=partition_by, partition=partition
        )
        with portal.wrap_async_context_manager(job) as begun:
            return begun.ticket


def found(profile: Profile) -> dict[str, tuple[int, int | None]]:
    return {rows.partition: (rows.rows, rows.plain_bytes) for rows in profile.incoming}


def measured(df: DataFrame, ticket: WriteTicket) -> int:
    rows = [table_rows(batch, ticket) for batch in to_arrow(df).to_batches()]
    return plain_bytes(pa.Table.from_batches(rows, ticket.schema))


@pytest.mark.parametrize("partition_by", [[], ["tail"], ["day", "ok"], ["price"]], ids=str)
def test_bytes_are_those_that_the_engine_measures(spark: SparkSession, tmp_path: Path, partition_by: list[str]) -> None:
    df = odd_rows(spark)
    ticket = ticket_for(df, tmp_path / "t", partition_by)
    profile = profiled(df, ticket)
    assert sum(rows.rows for rows in profile.incoming) == 4
    assert profile.plain_bytes == measured(df, ticket)
    assert sorted(set(profile.paths.values())) == [rows.partition for rows in profile.incoming]


def test_null_and_the_empty_string_are_one_partition(spark: SparkSession, tmp_path: Path) -> None:
    df = odd_rows(spark)
    ticket = ticket_for(df, tmp_path / "t", ["tail"])
    profile = profiled(df, ticket)
    null = "tail=__HIVE_DEFAULT_PARTITION__"
    assert found(profile)[null] == (3, measured(df.where("id > 1"), ticket))
    assert sorted(profile.paths.values()) == [null, null, "tail=ünïcødé 🦆"]


def test_a_null_has_another_hash_than_the_same_null_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame([(1, None, "x"), (2, "x", None), (3, None, None)], "id int, a string, b string")
    assert len(profiled(df, ticket_for(df, tmp_path / "t", ["a", "b"])).paths) == 3


def test_static_columns_that_are_missing_count_too(spark: SparkSession, tmp_path: Path) -> None:
    df, static = odd_rows(spark), {"region": "øst", "year": 2013}
    ticket = ticket_for(df, tmp_path / "t", ["region", "year", "ok"], static)
    profile = profiled(df, ticket)
    assert profile.plain_bytes == measured(df, ticket)
    assert set(found(profile)) == {
        f"region=øst/year=2013/ok={ok}" for ok in ("true", "false", "__HIVE_DEFAULT_PARTITION__")
    }
    all_static = ticket_for(df, tmp_path / "u", ["region", "year"], static)
    assert found(profiled(df, all_static)) == {"region=øst/year=2013": (4, measured(df, all_static))}


def test_columns_may_have_the_names_that_the_profile_gives(spark: SparkSession, tmp_path: Path) -> None:
    names = ["rows", "text_bytes", "hash", "column1", "column0"]
    df = spark.createDataFrame([(1, "x", 2, "yy", 3)], "v int, w string, x int, y string, z int").toDF(*names)
    ticket = ticket_for(df, tmp_path / "t", ["column1", "hash"])
    assert found(profiled(df, ticket)) == {"column1=yy/hash=2": (1, measured(df, ticket))}


def test_nothing_comes_of_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    df = odd_rows(spark).where("id < 0")
    for number, partition_by in enumerate(([], ["tail"])):
        assert profiled(df, ticket_for(df, tmp_path / str(number), partition_by)) == Profile((), {})


def test_a_row_outside_of_the_write_is_refused_before_any_task(spark: SparkSession, tmp_path: Path) -> None:
    df = odd_rows(spark)
    with pytest.raises(InvalidRequest, match=r"a row has ok=(None|True)"):
        profiled(df, ticket_for(df, tmp_path / "t", ["ok"], {"ok": False}))
