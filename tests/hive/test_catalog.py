"""``catalog_table``: what Spark's catalog is told after a commit, and what it has to be before one."""

import asyncio
import datetime as dt
import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import tallymark
from tallymark import InvalidRequest, WriteResult
from tallymark.engine.views.partitions import Partitions
from tallymark.spark_glue.catalog import refresh_catalog
from tallymark.spark_glue.catalog_statement import add_statements
from tallymark.spark_glue.catalog_table import find_catalog_table
from tests.support.storage import data_files

pytestmark = [pytest.mark.spark, pytest.mark.hive]

TEXTS = (
    None, "plain", "ünïcødé", "日本", "🦆", "a/b", "a=b", "50%", "%2F", "a b", " lead", "01", "true", "null",
    "a:b", "it's", 'say "x"', "a#b?c", "a*b", "a\\b", "a\\u0041", "{x}", "[x]", "a\tb", "a\nb", "a+b", "${env:HOME}",
    "$x", ".", "_x",
)  # fmt: skip

KINDS: dict[str, Sequence[object]] = {
    "string": TEXTS,
    "tinyint": (None, -128, 0, 127),
    "int": (None, -1, 0, 2013),
    "bigint": (None, -(2**63), 2**63 - 1),
    "boolean": (None, True, False),
    "date": (None, dt.date(1, 1, 1), dt.date(2024, 2, 29)),
    "decimal(10,2)": (None, Decimal("0.00"), Decimal("-1.50")),
}

Make = Callable[..., str]


@pytest.fixture(params=["datasource", "hive"])
def make(request: pytest.FixtureRequest, hive: SparkSession) -> Make:
    """Makes an empty table of the catalog of either kind; returns its name."""

    def make_table(url: Path, columns: str = "id bigint", partition_by: str = "part string") -> str:
        name = f"db.t{secrets.token_hex(4)}"
        if request.param == "hive":
            hive.sql(
                f"CREATE EXTERNAL TABLE {name} ({columns}) PARTITIONED BY ({partition_by}) STORED AS PARQUET "
                f"LOCATION '{url}'"
            )
        else:
            names = ", ".join(column.split()[0] for column in partition_by.split(", "))
            hive.sql(
                f"CREATE TABLE {name} ({columns}, {partition_by}) USING parquet PARTITIONED BY ({names}) "
                f"LOCATION '{url}'"
            )
        return name

    return make_table


def rows(spark: SparkSession, parts: Sequence[object], kind: str = "string") -> DataFrame:
    return spark.createDataFrame(list(enumerate(parts)), f"id bigint, part {kind}").coalesce(1)


def write(df: DataFrame, url: Path, name: str, mode: Any = "append", **keywords: Any) -> WriteResult:
    result: WriteResult = tallymark.write(
        df, str(url), mode=mode, partition_by=["part"], catalog_table=name, **keywords
    )
    return result


def partitions(spark: SparkSession, name: str) -> list[str]:
    return [row[0] for row in spark.sql(f"SHOW PARTITIONS {name}").collect()]


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def content(df: DataFrame) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in df.select("id", "part").collect()), key=repr)


@contextmanager
def on_event(event: str, act: Callable[[], object]) -> Iterator[None]:
    """Within the block, act when a job logs the event."""

    class Acting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if getattr(record, "event", None) == event:
                act()

    logger, acting = logging.getLogger("tallymark"), Acting()
    before = logger.level
    logger.addHandler(acting)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(before)
        logger.removeHandler(acting)


def test_new_partitions_are_in_the_catalog_when_write_returns(hive: SparkSession, tmp_path: Path, make: Make) -> None:
    name = make(tmp_path / "table")
    result = write(rows(hive, ["a", "b"]), tmp_path / "table", name)
    assert result.catalog == f"spark_catalog.{name}: 2 partitions added, 0 dropped"
    assert result.pending is None
    assert partitions(hive, name) == ["part=a", "part=b"]
    write(rows(hive, ["b", "c"]), tmp_path / "table", name)
    assert partitions(hive, name) == ["part=a", "part=b", "part=c"]
    assert content(hive.table(name)) == [(0, "a"), (0, "b"), (1, "b"), (1, "c")]


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_every_kind_come_back_from_the_catalog(
    hive: SparkSession, tmp_path: Path, make: Make, kind: str
) -> None:
    name = make(tmp_path / "with space 50%", partition_by=f"part {kind}")
    df = rows(hive, KINDS[kind], kind)
    result = write(df, tmp_path / "with space 50%", name)
    assert result.catalog == f"spark_catalog.{name}: {len(KINDS[kind])} partitions added, 0 dropped"
    assert content(hive.table(name)) == content(df)
    again = write(df, tmp_path / "with space 50%", name, "overwrite", partition_overwrite="dynamic")
    assert again.catalog == f"spark_catalog.{name}: 0 partitions added, 0 dropped"
    assert content(hive.table(name)) == content(df)
    emptied = write(df.where("id < 0"), tmp_path / "with space 50%", name, "overwrite", partition_overwrite="static")
    assert emptied.catalog == f"spark_catalog.{name}: 0 partitions added, {len(KINDS[kind])} dropped"
    assert partitions(hive, name) == []


def test_an_overwrite_takes_emptied_partitions_out_of_the_catalog_and_no_others(
    hive: SparkSession, tmp_path: Path, make: Make
) -> None:
    table, name = tmp_path / "table", make(tmp_path / "table")
    write(rows(hive, ["a", "b"]), table, name)
    rows(hive, ["foreign"]).drop("part").write.parquet(str(tmp_path / "elsewhere"))
    hive.sql(f"ALTER TABLE {name} ADD PARTITION (part='foreign') LOCATION '{tmp_path / 'elsewhere'}'")
    assert len(content(hive.table(name))) == 3  # Spark has listed the files by now, and keeps that
    result = write(rows(hive, ["b", "c"]), table, name, "overwrite", partition_overwrite="static")
    assert result.catalog == f"spark_catalog.{name}: 1 partitions added, 1 dropped"
    assert partitions(hive, name) == ["part=b", "part=c", "part=foreign"]
    assert content(hive.table(name)) == [(0, "b"), (0, "foreign"), (1, "c")]
    assert data_files(tmp_path / "elsewhere")


def test_a_static_partition_whose_column_the_rows_lack_is_told_and_taken_out_once_it_is_emptied(
    hive: SparkSession, tmp_path: Path, make: Make
) -> None:
    table, name = tmp_path / "table", make(tmp_path / "table")
    for part in ("a", "b"):
        write(hive.range(2).toDF("id").coalesce(1), table, name, partition={"part": part})
    assert partitions(hive, name) == ["part=a", "part=b"]
    assert content(hive.table(name)) == [(0, "a"), (0, "b"), (1, "a"), (1, "b")]
    write(hive.range(0).toDF("id"), table, name, "overwrite", partition={"part": "a"})
    assert partitions(hive, name) == ["part=b"]
    assert content(hive.table(name)) == [(0, "b"), (1, "b")]


def test_three_hundred_partitions_are_one_statement(hive: SparkSession, tmp_path: Path, make: Make) -> None:
    table, name = tmp_path / "table", make(tmp_path / "table", partition_by="part bigint")
    df = hive.range(300).selectExpr("id", "id AS part").coalesce(1)
    assert write(df, table, name).catalog == f"spark_catalog.{name}: 300 partitions added, 0 dropped"
    assert len(list(add_statements(name, ["part"], str(table), partitions(hive, name)))) == 1
    assert hive.table(name).where("part = 299").collect() == [(299, 299)]


def test_a_table_without_partitions_is_refreshed(hive: SparkSession, tmp_path: Path) -> None:
    url, name = tmp_path / "table", "db.flat"
    hive.sql(f"CREATE TABLE {name} (id bigint) USING parquet LOCATION '{url}'")
    for count in (3, 5):
        result = tallymark.write(hive.range(count), str(url), mode="overwrite", catalog_table=name)
        assert result.catalog == f"spark_catalog.{name}: 0 partitions added, 0 dropped"
        assert hive.table(name).count() == count


def test_sync_catalog_tells_all_that_earlier_writes_have_not(hive: SparkSession, tmp_path: Path, make: Make) -> None:
    table = tmp_path / "table"
    tallymark.write(rows(hive, ["a", None]), str(table), mode="append", partition_by=["part"])
    name = make(table)
    change = tallymark.sync_catalog(hive, str(table), name)
    assert (change.added, change.dropped) == (("part=__HIVE_DEFAULT_PARTITION__", "part=a"), ())
    tallymark.write(rows(hive, ["b"]), str(table), mode="overwrite", partition_overwrite="static")
    change = tallymark.sync_catalog(hive, str(table), name)
    assert (change.added, change.dropped) == (("part=b",), ("part=__HIVE_DEFAULT_PARTITION__", "part=a"))
    assert content(hive.table(name)) == [(0, "b")]


def test_a_failure_of_the_catalog_is_told_and_the_commit_stands_and_the_next_write_cures_it(
    hive: SparkSession, tmp_path: Path, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    table, name = tmp_path / "table", make(tmp_path / "table")

    with on_event("instant.sealed", lambda: hive.sql(f"DROP TABLE {name}")):  # as somebody may while the job runs
        result = write(rows(hive, ["a"]), table, name)
    assert result.catalog is None
    assert result.pending is not None
    assert result.pending.startswith(f"catalog table `spark_catalog`.`db`.`{name[3:]}` does not have the newest")
    assert f"catalog.failed instant={result.instant} table=spark_catalog.{name}" in caplog.text
    assert content(tallymark.read(hive, str(table))) == [(0, "a")]
    again = make(table)
    assert write(rows(hive, ["b"]), table, again).catalog == f"spark_catalog.{again}: 2 partitions added, 0 dropped"
    assert content(hive.table(again)) == [(0, "a"), (0, "b")]


def test_what_another_job_commits_meanwhile_is_told_in_the_end(hive: SparkSession, tmp_path: Path, make: Make) -> None:
    table, name = tmp_path / "table", make(tmp_path / "table")
    write(rows(hive, ["a"]), table, name)
    emptied = write(rows(hive, ["b"]), table, name, "overwrite", partition_overwrite="static")
    assert emptied.catalog is not None
    target = find_catalog_table(hive, name, table.as_uri(), rows(hive, []).schema, ("part",))
    hive.sql(f"ALTER TABLE {name} ADD PARTITION (part='a') LOCATION '{table}/part=a'")  # as if it was to be dropped yet
    rivals = iter([lambda: tallymark.write(rows(hive, ["a"]), str(table), mode="append")])

    def read() -> Partitions:
        found = asyncio.run(tallymark.open_table(str(table)).partitions())
        next(rivals, lambda: None)()  # comes between this reading and what the catalog is told by it
        return found

    change = refresh_catalog(hive, target, read)
    assert (change.dropped, change.added) == (("part=a",), ("part=a",))
    assert partitions(hive, name) == ["part=a", "part=b"]


UNFIT = {
    "managed": (
        "CREATE TABLE {name} (id bigint, part string) USING parquet PARTITIONED BY (part)",
        "is managed; it has",
    ),
    "view": ("CREATE VIEW {name} AS SELECT 1 AS id, 'a' AS part", "is view; it has to be an external table"),
    "csv": (
        "CREATE TABLE {name} (id bigint, part string) USING csv PARTITIONED BY (part) LOCATION '{url}'",
        "is a table of csv; it has to be one of Parquet files",
    ),
    "orc": (
        "CREATE EXTERNAL TABLE {name} (id bigint) PARTITIONED BY (part string) STORED AS ORC LOCATION '{url}'",
        "is a table of hive; it has to be one of Parquet files",
    ),
    "elsewhere": (
        "CREATE TABLE {name} (id bigint, part string) USING parquet PARTITIONED BY (part) LOCATION '{url}er'",
        "lies at file:.*tableer, and this table at file:.*table; both",
    ),
    "flat": (
        "CREATE TABLE {name} (id bigint, part string) USING parquet LOCATION '{url}'",
        r"is partitioned by \[\], and this table by \['part'\]; both have to agree",
    ),
    "typed": (
        "CREATE TABLE {name} (id bigint, part int) USING parquet PARTITIONED BY (part) LOCATION '{url}'",
        "has partition column 'part' as int, and this table as string; both have to agree",
    ),
    "purging": (
        "CREATE EXTERNAL TABLE {name} (id bigint) PARTITIONED BY (part string) STORED AS PARQUET LOCATION '{url}'",
        "has external.table.purge=true, by which dropped partitions lose their files",
    ),
    "missing": ("SELECT 1", "is not in Spark's catalog"),
}


@pytest.mark.parametrize("what", UNFIT)
def test_an_unfit_table_is_refused_with_one_that_would_do_and_nothing_is_written(
    hive: SparkSession, tmp_path: Path, what: str
) -> None:
    name, url = f"db.{what}{secrets.token_hex(4)}", tmp_path / "it's a $HOME table"
    statement, problem = UNFIT[what]
    hive.sql(statement.format(name=name, url=str(url).replace("'", "\\'").replace("$", "\\u0024")))
    if what == "purging":
        hive.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('external.table.purge'='TRUE')")
    before = files_below(tmp_path)
    with pytest.raises(InvalidRequest, match=f"catalog_table='{name}' {problem}") as caught:
        write(rows(hive, ["a"]), url, name)
    assert files_below(tmp_path) == before
    hive.sql(f"DROP {'VIEW' if what == 'view' else 'TABLE'} IF EXISTS {name}")
    hive.sql(str(caught.value).partition("make one: ")[2])
    assert write(rows(hive, ["a"]), url, name).catalog == f"spark_catalog.{name}: 1 partitions added, 0 dropped"
    assert content(hive.table(name)) == [(0, "a")]


def test_a_table_whose_directories_are_not_to_be_read_has_no_catalog_table(hive: SparkSession, tmp_path: Path) -> None:
    url, name = tmp_path / "table", "db.kept"
    hive.sql(f"CREATE TABLE {name} (id bigint) USING parquet LOCATION '{url}'")
    with pytest.raises(InvalidRequest, match=r"readers='table' keeps replaced files"):
        tallymark.write(hive.range(3), str(url), mode="append", readers="table", catalog_table=name)
    assert files_below(url) == set()
    tallymark.write(hive.range(3), str(url), mode="append", readers="table")
    with pytest.raises(InvalidRequest, match=r"read by tallymark\.read"):
        tallymark.sync_catalog(hive, str(url), name)


@pytest.mark.parametrize("name", ["", "a.b.c.d", "db.t; DROP TABLE x", "db..t", "`", 5])
def test_what_is_no_name_of_a_table_is_refused(hive: SparkSession, tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidRequest, match=r"is not the name of a table; say 'database\.table'"):
        tallymark.write(hive.range(3), str(tmp_path), mode="append", catalog_table=name)
    assert files_below(tmp_path) == set()
