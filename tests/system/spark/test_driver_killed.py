"""A driver dies by SIGKILL; the next write, or a rollback, leaves exactly the committed files."""

import json
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from pyspark.sql import SparkSession

import tallymark
from tests.support import process
from tests.support.place import Place
from tests.support.spark import LOCAL, LOCAL_CLUSTER
from tests.system.spark.elsewhere import assert_at_rest, place
from tests.system.spark.jobs import wide_rows, write
from tests.table_invariants import committed_files, decisions, table_is_at_rest

__all__ = ["place"]

pytestmark = pytest.mark.spark

local_disk = pytest.mark.parametrize("store", ["local"])


def run_until_killed(
    place: Place, flags: Path, mode: str, point: str, *txn: str, master: str = LOCAL
) -> Callable[[], None]:
    """Returns a wait for all that the dead driver has left behind: its JVM, executors and Python workers."""
    settings = json.dumps(dict(place.spark_conf))
    return process.run_until_killed(
        "tests.system.spark.driver_program",
        master,
        place.native_url,
        mode,
        point,
        str(flags / "killed"),
        settings,
        *txn,
    )


@pytest.mark.parametrize(
    ("store", "master", "mode", "point"),
    [
        ("local", LOCAL, "append", "while tasks write"),
        pytest.param("local", LOCAL_CLUSTER, "overwrite", "while tasks write", marks=pytest.mark.release),
        pytest.param("s3", LOCAL, "overwrite", "while tasks write", marks=pytest.mark.release),
        pytest.param("hdfs", LOCAL, "overwrite", "while tasks write", marks=pytest.mark.release),
        ("s3", LOCAL, "overwrite", "before the entry"),
        pytest.param("hdfs", LOCAL, "overwrite", "before the entry", marks=pytest.mark.release),
    ],
)
def test_the_next_write_rolls_back_a_driver_that_was_killed_before_its_entry(
    spark: SparkSession, place: Place, tmp_path: Path, store: str, master: str, mode: str, point: str
) -> None:
    """On a local disk what is left of it may go on meanwhile."""
    old, more = wide_rows(spark), wide_rows(spark, version=2)
    write(old, place.native_url)
    await_the_rest = run_until_killed(place, tmp_path, mode, point, master=master)
    if store != "local":
        await_the_rest()
    with pytest.raises(AssertionError):
        table_is_at_rest(place.objects())
    write(more, place.native_url)
    committed = committed_files(place.objects())
    await_the_rest()
    objects = assert_at_rest(spark, place, old.unionAll(more))
    assert committed_files(objects) == committed, "what was left of the dead job published"
    assert [entry["kind"] for entry in decisions(objects).values()] == ["commit", "rollback", "commit"]


@local_disk
@pytest.mark.release
@pytest.mark.parametrize("point", ["while tasks write", "before the entry", "after the entry"])
def test_a_driver_that_was_killed_while_small_files_were_filled_leaves_them_or_the_filled_ones(
    spark: SparkSession, place: Place, tmp_path: Path, point: str
) -> None:
    old, more = wide_rows(spark), wide_rows(spark, version=2)
    write(old, place.url)
    before = place.data_files()
    await_the_rest = run_until_killed(place, tmp_path, "fill", point)
    write(more, place.url)
    await_the_rest()
    committed = committed_files(place.objects())
    if point == "after the entry":
        assert not before <= committed, "small files were filled"
        old = old.unionAll(wide_rows(spark, version=1, partitions=2))
    else:
        assert before <= committed, "no small file went"
    assert_at_rest(spark, place, old.unionAll(more))


@local_disk
@pytest.mark.smoke
def test_a_rollback_ends_a_driver_that_was_killed_before_its_entry(
    spark: SparkSession, place: Place, tmp_path: Path
) -> None:
    old = wide_rows(spark)
    write(old, place.url)
    before = place.data_files()
    await_the_rest = run_until_killed(place, tmp_path, "overwrite", "before the entry")
    assert place.data_files() > before, "its tasks had published"
    ended = anyio.run(tallymark.open_table(place.url).rollback)
    assert [instant.outcome for instant in ended] == ["rolled back"]
    assert place.data_files() == before
    await_the_rest()
    assert_at_rest(spark, place, old)
    assert place.data_files() == before


@local_disk
@pytest.mark.release
@pytest.mark.parametrize("point", ["while tasks write", "after the entry"])
def test_a_rerun_with_the_txn_of_a_driver_that_was_killed_leaves_its_rows_once(
    spark: SparkSession, place: Place, tmp_path: Path, point: str
) -> None:
    write(wide_rows(spark), place.url)
    await_the_rest = run_until_killed(place, tmp_path, "append", point, "night:7")
    killed = wide_rows(spark, version=1, partitions=2)
    assert write(killed, place.url, txn="night:7").is_rerun == (point == "after the entry")
    await_the_rest()
    assert write(killed, place.url, txn="night:7").is_rerun
    assert_at_rest(spark, place, wide_rows(spark).unionAll(killed))


@pytest.mark.parametrize(
    "store", ["local", *(pytest.param(name, marks=pytest.mark.release) for name in ("s3", "hdfs"))]
)
def test_the_next_write_completes_what_a_driver_committed_that_was_killed_right_after_its_entry(
    spark: SparkSession, place: Place, tmp_path: Path
) -> None:
    old, new, more = wide_rows(spark), wide_rows(spark, version=1, partitions=2), wide_rows(spark, version=2)
    write(old, place.native_url)
    before = place.data_files()
    await_the_rest = run_until_killed(place, tmp_path, "overwrite", "after the entry")
    assert place.data_files() > before, "what it replaced still lies there"
    assert not before <= committed_files(place.objects()), "and yet it was replaced"
    overwritten = new.unionAll(old.where("part = 'p2'"))
    assert tallymark.read(spark, place.native_url).count() == overwritten.count(), "it has committed"
    write(more, place.native_url)
    await_the_rest()
    objects = assert_at_rest(spark, place, overwritten.unionAll(more))
    assert [entry["kind"] for entry in decisions(objects).values()] == ["commit", "commit", "commit"]
