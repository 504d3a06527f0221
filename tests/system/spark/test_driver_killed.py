"""A driver dies by SIGKILL; the next write, or a rollback, leaves exactly the committed files."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from pyspark.sql import SparkSession

import tallymark
from tests.support import process
from tests.support.readers import assert_readers_agree
from tests.support.spark import LOCAL, LOCAL_CLUSTER
from tests.support.storage import committed_by_the_log, data_files, exactly_the_committed_files, files
from tests.system.spark.jobs import wide_rows, write

pytestmark = pytest.mark.spark


def run_until_killed(master: str, table: Path, mode: str, point: str, *txn: str) -> Callable[[], None]:
    """Returns a wait for all that the dead driver has left behind: its JVM, executors and Python workers."""
    return process.run_until_killed("tests.system.spark.driver_program", master, str(table), mode, point, *txn)


def open_instants(table: Path) -> set[str]:
    return {name for name in files(table) if name.startswith(".hoodie/.tallymark/open/")}


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Path:
    """A table of three partitions."""
    write(wide_rows(spark), tmp_path / "table")
    return tmp_path / "table"


@pytest.mark.parametrize(
    ("master", "mode"), [(LOCAL, "append"), pytest.param(LOCAL_CLUSTER, "overwrite", marks=pytest.mark.release)]
)
def test_the_next_write_ends_a_driver_that_was_killed_while_its_tasks_wrote(
    spark: SparkSession, table: Path, master: str, mode: str
) -> None:
    await_the_rest = run_until_killed(master, table, mode, "while tasks write")
    assert len(open_instants(table)) == 1
    more = wide_rows(spark, version=2)
    write(more, table)
    committed = exactly_the_committed_files(table, scratch=True)  # it may have died in the middle of a beat's put
    await_the_rest()
    assert exactly_the_committed_files(table, scratch=True) == committed, "what was left of the dead job published"
    assert_readers_agree(spark, table, wide_rows(spark).unionAll(more))


@pytest.mark.release
@pytest.mark.parametrize("point", ["while tasks write", "before the entry", "after the entry"])
def test_a_driver_that_was_killed_while_small_files_were_filled_leaves_them_or_the_filled_ones(
    spark: SparkSession, table: Path, point: str
) -> None:
    before = data_files(table)
    await_the_rest = run_until_killed(LOCAL, table, "fill", point)
    more = wide_rows(spark, version=2)
    write(more, table)
    await_the_rest()
    committed = exactly_the_committed_files(table, scratch=True)
    old = wide_rows(spark)
    if point == "after the entry":
        assert not before <= committed, "small files were filled"
        old = old.unionAll(wide_rows(spark, version=1, partitions=2))
    else:
        assert before <= committed, "no small file went"
    assert_readers_agree(spark, table, old.unionAll(more))


@pytest.mark.smoke
def test_a_rollback_ends_a_driver_that_was_killed_before_its_entry(spark: SparkSession, table: Path) -> None:
    before = data_files(table)
    await_the_rest = run_until_killed(LOCAL, table, "overwrite", "before the entry")
    assert data_files(table) > before, "its tasks had published"
    ended = anyio.run(tallymark.open_table(str(table)).rollback)
    assert [instant.outcome for instant in ended] == ["rolled back"]
    assert exactly_the_committed_files(table) == before
    await_the_rest()
    assert exactly_the_committed_files(table) == before
    assert_readers_agree(spark, table, wide_rows(spark))


@pytest.mark.release
@pytest.mark.parametrize("point", ["while tasks write", "after the entry"])
def test_a_rerun_with_the_txn_of_a_driver_that_was_killed_leaves_its_rows_once(
    spark: SparkSession, table: Path, point: str
) -> None:
    await_the_rest = run_until_killed(LOCAL, table, "append", point, "night:7")
    killed = wide_rows(spark, version=1, partitions=2)
    assert write(killed, table, txn="night:7").is_rerun == (point == "after the entry")
    await_the_rest()
    assert write(killed, table, txn="night:7").is_rerun
    exactly_the_committed_files(table, scratch=True)
    assert_readers_agree(spark, table, wide_rows(spark).unionAll(killed))


def test_the_next_write_completes_what_a_driver_committed_that_was_killed_right_after_its_entry(
    spark: SparkSession, table: Path
) -> None:
    before = data_files(table)
    await_the_rest = run_until_killed(LOCAL, table, "overwrite", "after the entry")
    assert data_files(table) > before, "what it replaced still lies there"
    assert not before <= committed_by_the_log(table), "and yet it was replaced"
    overwritten = wide_rows(spark, version=1, partitions=2).unionAll(wide_rows(spark).where("part = 'p2'"))
    assert tallymark.read(spark, str(table)).count() == overwritten.count()
    more = wide_rows(spark, version=2)
    write(more, table)
    exactly_the_committed_files(table)
    await_the_rest()
    exactly_the_committed_files(table)
    assert_readers_agree(spark, table, overwritten.unionAll(more))
