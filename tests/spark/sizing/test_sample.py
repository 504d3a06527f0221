"""A sample of a DataFrame tells what its files will take."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import tallymark
from tallymark.engine.sizing.profile import Sample
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.spark_glue.profile import profiled
from tallymark.spark_glue.sample import chosen, sampled
from tests.spark.sizing.test_profile import ticket_for

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

ROWS = 40_000


def rows(spark: SparkSession) -> DataFrame:
    """Of four partitions, the first with five eighths of the rows; a name recurs some twenty times in it."""
    return spark.range(0, ROWS, 1, 2).selectExpr(
        "id", "CONCAT('name ', xxhash64(id) % 1000) AS name", "CAST(GREATEST(0, id % 8 - 4) AS INT) AS part"
    )


def sample_of(df: DataFrame, ticket: WriteTicket, *, row_group_bytes: int, max_file_bytes: int = 1 << 20) -> Sample:
    settings = replace(ticket.settings, row_group_bytes=row_group_bytes)
    job = replace(ticket, settings=settings, max_file_bytes=max_file_bytes)
    sample = sampled(df, job, profiled(df, job))
    assert sample is not None
    return sample


@pytest.fixture
def ticket(spark: SparkSession, tmp_path: Path) -> WriteTicket:
    return ticket_for(rows(spark), tmp_path / "t", ["part"])


def test_a_dataframe_of_less_than_a_row_group_is_encoded_whole(spark: SparkSession, ticket: WriteTicket) -> None:
    sample = sample_of(rows(spark), ticket, row_group_bytes=1 << 26, max_file_bytes=1 << 26)
    assert (sample.rows, sample.plain_bytes) == (ROWS, profiled(rows(spark), ticket).plain_bytes)
    assert 0 < sample.encoded_bytes < sample.plain_bytes


def test_the_sample_of_a_large_one_is_a_part_of_its_largest_partition_as_its_files_will_be(
    spark: SparkSession, tmp_path: Path, ticket: WriteTicket
) -> None:
    sample = sample_of(rows(spark), ticket, row_group_bytes=300_000)
    assert 300_000 / 2 < sample.plain_bytes < 2 * 300_000
    only = rows(spark).where("part = 0")
    tallymark.write(only.coalesce(1), str(tmp_path / "u"), mode="append", partition_by=["part"])
    (file,) = (tmp_path / "u").glob("part=0/*.parquet")
    size, plain = file.stat().st_size, profiled(only, ticket).plain_bytes
    assert sample.encoded_bytes / sample.plain_bytes == pytest.approx(size / plain, rel=0.15)


def test_of_a_partition_of_many_files_one_files_share_is_looked_at(spark: SparkSession, ticket: WriteTicket) -> None:
    profile, small = profiled(rows(spark), ticket), replace(ticket, max_file_bytes=25_000)
    some = chosen(rows(spark), small, profile)
    assert profiled(some, ticket).plain_bytes == pytest.approx(4 * 25_000, rel=0.1)
    found = some.collect()
    assert {row.part for row in found} == {0}
    assert max(row.id for row in found) - min(row.id for row in found) > 0.9 * ROWS


def test_a_table_without_partitions_is_sampled_too(spark: SparkSession, tmp_path: Path) -> None:
    ticket = ticket_for(rows(spark), tmp_path / "flat", [])
    sample = sample_of(rows(spark), ticket, row_group_bytes=1 << 26, max_file_bytes=25_000)
    assert 25_000 * 0.9 < sample.plain_bytes < 2 * 25_000
