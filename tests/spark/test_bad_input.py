"""Calls that are refused: one error with the input, the rule and the remedy, and storage as it was."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import tallymark
from tallymark import InvalidRequest, TallymarkError
from tallymark.backends.errors import InvalidPath, NotPermitted
from tallymark.engine.errors import UnsupportedTable
from tests.support.rights import locked_folder
from tests.support.storage import data_files, exactly_the_committed_files, files, tree

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table that no test here can change."""
    path = tmp_path_factory.mktemp("bad") / "table"
    tallymark.write(good(spark), str(path), mode="append", partition_by=["part"])
    return path


def good(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(1, "a", 1.5)], "id long, part string, price double").coalesce(1)


def refused(df: DataFrame, url: Path | str, error: type[TallymarkError], message: str, **keywords: Any) -> None:
    """Assert that the write is refused with one error of one short line, which says why."""
    keywords = {"mode": "append", **keywords}
    with pytest.raises(error, match=message) as caught:
        tallymark.write(df, str(url), **keywords)
    assert type(caught.value) is error
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def untouched(root: Path, call: Callable[[], None]) -> None:
    before = tree(root)
    call()
    assert tree(root) == before


ROWS = "id long, part string, price double"

CALLS: dict[str, tuple[str, dict[str, object], str]] = {
    "unknown mode": (ROWS, {"mode": "merge"}, "mode='merge': say 'append' or 'overwrite'"),
    "rows to delete by where": (
        ROWS,
        {"mode": "delete", "where": "id = 1"},
        "where=... is for a delete without a Data",
    ),
    "mode by key": (ROWS, {"mode": "upsert"}, "mode='upsert' needs a table with a record key: name the columns"),
    "unknown overwrite": (
        ROWS,
        {"mode": "overwrite", "partition_overwrite": "partly"},
        "partition_overwrite='partly': say 'static' or 'dynamic'",
    ),
    "unknown markers": (ROWS, {"markers": "paper"}, "kind='paper'"),
    "missing partition column": (ROWS, {"partition_by": ["day"]}, "partition column 'day' is not in the schema"),
    "doubled partition column": (ROWS, {"partition_by": ["part", "part"]}, "'part' is named twice"),
    "partition columns as one string": (
        ROWS,
        {"partition_by": "part"},
        r"partition_by='part' is one string; give a list: \['part'\]",
    ),
    "nested partition column": (
        "id long, at struct<day: string>",
        {"partition_by": ["at"]},
        "partition column 'at' is struct",
    ),
    "field of a struct": (
        "id long, at struct<day: string>",
        {"partition_by": ["at.day"]},
        "partition column 'at.day' is not in the schema.*copy it into a column",
    ),
    "float partition column": (ROWS, {"partition_by": ["price"]}, "partition column 'price' is double"),
    "only partition columns": ("a int, b int", {"partition_by": ["a", "b"]}, "'a', 'b' are all there is"),
    "interval": ("id long, took interval day to second", {}, "column 'took'.*duration"),
    "year-month interval": (
        "id long, took interval year to month",
        {},
        r"column 'took' \(interval year to month\) has no Arrow form; cast it",
    ),
    "null type": ("id long, nothing void", {}, "column 'nothing' is of type null"),
    "map with a key of another type": ("id long, m map<int, string>", {}, "column 'm'.*cast its keys to string"),
    "reserved name": ("_hoodie_file_name string, id long", {}, "'_hoodie_file_name'.*Hudi's own"),
    "name that readers cannot spell": ("`a b` string, id long", {}, "column 'a b'.*rename"),
    "names that differ in case": ("id long, ID long", {}, "'ID' and 'id' are one name"),
    "struct fields that differ in case": ("s struct<x: int, X: int>", {}, "'s.X' and 's.x' are one name"),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_call_that_makes_no_table_leaves_nothing(spark: SparkSession, tmp_path: Path, case: str) -> None:
    schema, keywords, message = CALLS[case]
    df = spark.createDataFrame([], schema)
    untouched(tmp_path, lambda: refused(df, tmp_path / "new", InvalidRequest, message, **keywords))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda spark: spark.range(1).selectExpr("id", "id AS id"), "'id' and 'id' are one name"),
        (lambda _: [1], r"df is a builtins\.list; give a pyspark\.sql\.DataFrame"),
        (lambda spark: spark.readStream.format("rate").load(), "df is a stream.*foreachBatch"),
    ],
    ids=["a column that stands twice", "no DataFrame of Spark", "a stream"],
)
def test_what_is_no_table_of_rows_is_refused(
    spark: SparkSession, tmp_path: Path, made: Callable[[SparkSession], Any], message: str
) -> None:
    untouched(tmp_path, lambda: refused(made(spark), tmp_path / "new", InvalidRequest, message))


OTHER_TABLES: dict[str, tuple[str, dict[str, object], str]] = {
    "another type": (
        "id int, part string, price double",
        {},
        "column 'id' is int32, the table has int64",
    ),
    "a missing column": ("id long, part string", {}, r"column 'price' of the table \(double\) is missing"),
    "an extra column": (f"{ROWS}, more date", {}, r"column 'more' \(date32\[day\]\) is not in the table"),
    "other partitioning": (ROWS, {"partition_by": ["id"]}, r"partition_by=\['id'\].*partitioned by \['part'\]"),
}


@pytest.mark.parametrize("case", OTHER_TABLES)
def test_a_dataframe_unlike_the_table_is_refused_by_column_and_types(
    spark: SparkSession, table: Path, case: str
) -> None:
    schema, keywords, message = OTHER_TABLES[case]
    df = spark.createDataFrame([], schema)
    untouched(table, lambda: refused(df, table, InvalidRequest, message, **keywords))


def test_a_table_that_allows_no_nulls_takes_a_nullable_column_without_any_and_refuses_a_null_by_column(
    spark: SparkSession, tmp_path: Path
) -> None:
    required = spark.range(3)
    assert not required.schema["id"].nullable
    tallymark.write(required, str(tmp_path / "t"), mode="append")
    tallymark.write(spark.createDataFrame([(7,)], "id long"), str(tmp_path / "t"), mode="append")
    before = data_files(tmp_path / "t")
    nulls = spark.createDataFrame([(8,), (None,)], "id long")
    refused(nulls, tmp_path / "t", InvalidRequest, "column 'id' has 1 nulls, and the table's schema allows none")
    assert exactly_the_committed_files(tmp_path / "t") == before
    back = tallymark.read(spark, str(tmp_path / "t"))
    assert sorted(row.id for row in back.collect()) == [0, 1, 2, 7]
    assert back.schema == required.schema


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("folder", UnsupportedTable, "is not empty.*notes.txt"),
        ("plain", UnsupportedTable, "holds no table"),
        ("file", NotPermitted, "file.*Check rights and path"),
        ("file/below", NotPermitted, "Check rights and path"),
    ],
)
def test_a_place_that_holds_something_else_is_refused(
    spark: SparkSession, tmp_path: Path, url: str, error: type[TallymarkError], message: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/notes.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    good(spark).write.parquet(str(tmp_path / "plain"))
    untouched(tmp_path, lambda: refused(good(spark), tmp_path / url, error, message))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("hoodie.table.version=6", "hoodie.table.version=8", "hoodie.table.version='8'.*only tables with '6'"),
        ("hoodie.table.type=COPY_ON_WRITE", "hoodie.table.type=MERGE_ON_READ", "MERGE_ON_READ"),
        ("tallymark.format=2", "tallymark.format=3", "tallymark.format='3'.*newer release"),
    ],
)
def test_a_table_of_another_kind_is_refused_for_writing_and_reading(
    spark: SparkSession, tmp_path: Path, old: str, new: str, message: str
) -> None:
    tallymark.write(good(spark), str(tmp_path / "t"), mode="append", partition_by=["part"])
    properties = tmp_path / "t/.hoodie/hoodie.properties"
    text = properties.read_text()
    assert old in text
    properties.write_text(text.replace(old, new))
    untouched(tmp_path, lambda: refused(good(spark), tmp_path / "t", UnsupportedTable, message))
    with pytest.raises(UnsupportedTable, match=message):
        tallymark.read(spark, str(tmp_path / "t"))


def test_a_table_with_a_metadata_table_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    tallymark.write(good(spark), str(tmp_path / "t"), mode="append", partition_by=["part"])
    (tmp_path / "t/.hoodie/metadata/.hoodie").mkdir(parents=True)
    (tmp_path / "t/.hoodie/metadata/.hoodie/hoodie.properties").write_text("hoodie.table.name=metadata")
    untouched(tmp_path, lambda: refused(good(spark), tmp_path / "t", UnsupportedTable, "has a Hudi metadata table"))


def test_a_url_that_executors_cannot_write_to_is_refused(spark: SparkSession) -> None:
    refused(good(spark), "ftp://host/t", InvalidPath, "unknown scheme 'ftp'; known are file:")
    refused(good(spark), "memory:", InvalidRequest, "'memory:' lives in the driver")
    with pytest.raises(InvalidPath, match="unknown scheme 'ftp'"):
        tallymark.read(spark, "ftp://host/t")


@pytest.mark.usefixtures("table")  # a first write imports what nobody may not even read
def test_a_folder_without_the_right_to_write_is_refused(spark: SparkSession) -> None:
    df = good(spark)
    with locked_folder() as folder:
        untouched(folder, lambda: refused(df, folder / "t", NotPermitted, "Permission denied"))


def test_reading_where_no_table_is_says_so(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTable, match=re.escape(str(tmp_path)) + ".*no table yet"):
        tallymark.read(spark, str(tmp_path / "none"))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def nightly(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two commits, the second of which has replaced all of the first. A test changes it by a log entry at most."""
    path = tmp_path_factory.mktemp("nightly") / "table"
    old = flights(spark, (1, 2013, 1), (2, 2014, 1))
    tallymark.write(old, str(path), mode="append", partition_by=["year", "month"], txn=TXN)
    tallymark.write(old, str(path), mode="overwrite")
    return path


def flights(spark: SparkSession, *rows: tuple[int, int, int]) -> DataFrame:
    return spark.createDataFrame(rows, "flight long, year int, month int").coalesce(1)


TXN = "load:1"
YEAR = {"year": 2013}
NOT_IN_CATALOG = "catalog_table='{0}.flights'.*is not in Spark's catalog.*make one: CREATE TABLE `{0}`.`flights` \\("

NIGHTLY: dict[str, tuple[dict[str, Any], str]] = {
    "static value of another type": (
        {"partition": {"year": "2013"}},
        r"partition=\{'year': '2013'\}.*column 'year' is int32, and '2013' is a str; give an int",
    ),
    "static value that is too large": (
        {"partition": {"year": 2**40}},
        "column 'year' is int32, which cannot hold 1099511627776",
    ),
    "static names that are not a prefix": (
        {"partition": {"month": 1}},
        r"partition=\{'month': 1\}.*leaves out 'year'; the table is partitioned by.*name the first of these",
    ),
    "static name that is not a partition column": ({"partition": {"yaer": 2013}}, "'yaer' is not a partition column"),
    "static values that are not a mapping": ({"partition": "year=2013"}, "partition='year=2013': give values"),
    "guard of another type": ({"only_partitions": [{"year": "2013"}]}, "only_partitions=.*'2013' is a str"),
    "whole table outside of the guard": (
        {"only_partitions": YEAR},
        r"replaces the whole table, and only_partitions=\[\{'year': 2013\}\] allows less.*or allow more",
    ),
    "year outside of the guard": (
        {"partition": {"year": 2014}, "only_partitions": YEAR},
        "replaces all of partition={'year': 2014}, and only_partitions",
    ),
    "txn that named another write": (
        {"txn": TXN},
        rf"txn={TXN!r}.*was committed at position 1 \(instant .*give this one a txn of its own",
    ),
    "base that the log has not reached": (
        {"base": 9},
        "base=9: the log ends at position 2.*give one at which this table was read",
    ),
    "negative base": ({"base": -1}, "base=-1: give a position"),
}


@pytest.mark.parametrize("case", NIGHTLY)
def test_a_call_on_a_table_of_flights_is_refused_before_anything_changes(
    spark: SparkSession, nightly: Path, case: str
) -> None:
    keywords, message = NIGHTLY[case]
    df = flights(spark, (9, 2013, 1))
    untouched(nightly, lambda: refused(df, nightly, InvalidRequest, message, **{"mode": "overwrite", **keywords}))


@pytest.mark.parametrize("database", ["default", "nobodys"])
@pytest.mark.parametrize("is_new", [False, True])
def test_a_table_that_the_catalog_does_not_know_is_refused(
    spark: SparkSession, nightly: Path, tmp_path: Path, is_new: bool, database: str
) -> None:
    root, url = (tmp_path, tmp_path / "new") if is_new else (nightly, nightly)
    message, name = NOT_IN_CATALOG.format(database), f"{database}.flights"
    df = flights(spark, (9, 2013, 1))
    untouched(root, lambda: refused(df, url, InvalidRequest, message, catalog_table=name))


@pytest.mark.parametrize(
    ("as_of", "message"),
    [
        (1, r"as_of=1.*is deleted at once.*give position 2 or a later one"),
        (1, r"no longer all retained.*since position 2"),
        (9, r"positions 0 \(empty\) to 2"),
        ("2026-11-21T09:00:00", "has no time zone"),
    ],
)
def test_an_as_of_that_was_not_or_is_no_more_is_refused_and_nothing_changes(
    spark: SparkSession, nightly: Path, as_of: int | str, message: str
) -> None:
    def read() -> None:
        with pytest.raises(InvalidRequest, match=message):
            tallymark.read(spark, str(nightly), as_of=as_of)

    untouched(nightly, read)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (
            "only_partitions",
            r"^a row belongs to partition 'year=2014/month=7', and only_partitions=\[\{'year': 2013\}\]",
        ),
        ("partition", r"^a row has year=2014, and this write is for partition=\{'year': 2013\}"),
    ],
)
def test_a_row_outside_of_the_named_partitions_ends_the_job_and_adds_only_its_log_entry(
    spark: SparkSession, nightly: Path, named: str, message: str
) -> None:
    before = tree(nightly)
    df = flights(spark, (9, 2013, 1), (10, 2014, 7))
    how = {"mode": "overwrite", "partition_overwrite": "dynamic", named: YEAR}
    refused(df, nightly, InvalidRequest, f"{message}.*drop such rows", **how)
    after = tree(nightly)
    assert {name: after[name] for name in before} == before
    assert [name.rpartition("/")[0] for name in files(nightly) - before.keys()] == [".hoodie/.tallymark/log"]
