"""Attempts race, hang and lose their executors on a cluster of two hosts; the disk holds what was committed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.jars import java
from tests.support.process import await_that
from tests.support.readers import assert_readers_agree
from tests.support.services.standalone import standalone_cluster
from tests.support.storage import exactly_the_committed_files
from tests.system.disturbed import Disturbed, disturbed_writes
from tests.system.spark.jobs import wide_rows

pytestmark = pytest.mark.spark

TWINS, STRAGGLER = "both twins publish", "a twin hangs"
LOST, LOST_WITH_SHUFFLE = "an executor is lost", "an executor is lost with its shuffle files"

Jobs = dict[str, Disturbed]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    java()
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@pytest.fixture(scope="module")
def speculative(cluster: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    with disturbed_writes(cluster, tmp_path_factory.mktemp("speculative"), TWINS, STRAGGLER) as jobs:
        yield jobs


@pytest.fixture(scope="module")
def bereft(cluster: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    with disturbed_writes(cluster, tmp_path_factory.mktemp("bereft"), LOST, LOST_WITH_SHUFFLE) as jobs:
        yield jobs


def test_of_two_speculative_twins_that_both_finish_one_leaves_its_files(spark: SparkSession, speculative: Jobs) -> None:
    job = speculative[TWINS]
    result = job.outcome()
    twins = job.told(task=0)
    assert sorted(twin.attempt for twin in twins) == [0, 1]
    assert [len(twin.files) for twin in twins] == [3, 3], "both had published, before either had reported"
    assert twins[0].files.isdisjoint(twins[1].files)
    committed = exactly_the_committed_files(job.table)
    assert result["markers"] >= result["files"] + 3 == len(committed) + 3
    assert sorted(len(twin.files & committed) for twin in twins) == [0, 3]
    assert assert_readers_agree(spark, job.table, wide_rows(spark)) == result["rows"] == 3000


def test_a_speculative_twin_that_is_killed_in_mid_file_leaves_nothing(spark: SparkSession, speculative: Jobs) -> None:
    job = speculative[STRAGGLER]
    result = job.outcome()
    committed = exactly_the_committed_files(job.table)
    straggler = job.held()  # on a loaded machine that may be the later twin
    await_that(lambda: not Path(f"/proc/{straggler}").exists(), "Spark has killed it")
    [winner] = job.told(task=0)
    assert winner.pid != straggler, "which could not say anything any more"
    assert result["markers"] > result["files"] == len(committed)
    assert exactly_the_committed_files(job.table) == committed
    assert assert_readers_agree(spark, job.table, wide_rows(spark)) == 3000


@pytest.mark.parametrize("case", [LOST, pytest.param(LOST_WITH_SHUFFLE, marks=pytest.mark.release)])
def test_a_job_survives_its_executor_and_excludes_the_task_that_survives_it_too(
    spark: SparkSession, bereft: Jobs, case: str
) -> None:
    job = bereft[case]
    result = job.outcome()
    committed = exactly_the_committed_files(job.table)
    assert job.release().error == "Sealed", "the lost task went on, up to its files"
    assert result["markers"] > result["files"] == len(committed)
    assert exactly_the_committed_files(job.table) == committed
    assert assert_readers_agree(spark, job.table, wide_rows(spark)) == 3000
