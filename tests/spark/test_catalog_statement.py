"""The SQL that Spark's catalog is told, and when two locations are one place."""

import pytest

from tallymark import InvalidRequest
from tallymark.spark_glue.catalog_statement import (
    PARTITIONS_PER_STATEMENT,
    add_statements,
    drop_statements,
    partition_values,
    quoted_name,
)
from tallymark.spark_glue.catalog_table import comparable


def test_values_are_literals_that_nothing_can_end_or_substitute() -> None:
    (statement,) = add_statements("`db`.`t`", ["a", "b`c"], "s3a://lake/it's", ["a=x%27y/b`c=$%7Bz%7D%5C"])
    assert statement == (
        "ALTER TABLE `db`.`t` ADD IF NOT EXISTS "
        "PARTITION (`a`='x\\u0027y', `b``c`='\\u0024{z}\\u005c') "
        "LOCATION 's3a://lake/it\\u0027s/a=x%27y/b`c=\\u0024%7Bz%7D%5C'"
    )


def test_null_is_null() -> None:
    (statement,) = drop_statements("t", ["a", "b"], ["a=__HIVE_DEFAULT_PARTITION__/b=1"])
    assert statement == "ALTER TABLE t DROP IF EXISTS PARTITION (`a`=null, `b`='1')"
    assert partition_values("a=__HIVE_DEFAULT_PARTITION__/b=") == (None, "")


def test_many_partitions_are_few_statements() -> None:
    paths = [f"a={number}" for number in range(PARTITIONS_PER_STATEMENT + 1)]
    statements = list(drop_statements("t", ["a"], paths))
    assert [statement.count("PARTITION") for statement in statements] == [PARTITIONS_PER_STATEMENT, 1]
    assert list(add_statements("t", ["a"], "/t", [])) == []


def test_a_path_that_is_not_of_these_columns_is_not_told() -> None:
    with pytest.raises(ValueError, match="shorter"):
        list(drop_statements("t", ["a", "b"], ["a=1"]))


@pytest.mark.parametrize(
    ("name", "quoted"),
    [("t", "`t`"), ("db.t", "`db`.`t`"), ("c.db.t_1", "`c`.`db`.`t_1`"), ("`a.b`.`c``d`", "`a.b`.`c``d`")],
)
def test_a_name_is_quoted_part_by_part(name: str, quoted: str) -> None:
    assert quoted_name(name) == quoted


@pytest.mark.parametrize("name", ["", ".t", "a.b.c.d", "db.t; DROP TABLE x", "a b", "`a", "a`b", None])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match=r"say 'database\.table'"):
        quoted_name(name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://lake/t", "s3a://lake/t/"),
        ("S3N://lake/t", "s3://lake//t"),
        ("/data/t", "file:///data/t"),
        ("file:/data/t/", "file:///data//t"),
        ("hdfs://NameNode:8020/t", "hdfs://namenode/t/"),
        ("gs://lake/t", "gs://lake/t/"),
    ],
)
def test_one_place_has_many_locations(one: str, other: str) -> None:
    assert comparable(one) == comparable(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://lake/t", "s3://lake/T"),
        ("s3://lake/t", "gs://lake/t"),
        ("s3://lake/a/t", "s3://lake/t"),
        ("hdfs://one/t", "hdfs://two/t"),
        ("hdfs://one:9000/t", "hdfs://one/t"),
        ("file:/data/t", "file:/data/t%20"),
        ("s3://lake/a//t", "s3://lake/a/t"),
    ],
)
def test_other_places_stay_apart(one: str, other: str) -> None:
    assert comparable(one) != comparable(other)
