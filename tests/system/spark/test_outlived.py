"""Tasks outlive their job, as it was cancelled or its driver stood still; what they go on to write counts nowhere."""

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest
from pyspark.sql import SparkSession

import tallymark
from tests.support.process import await_stopped, await_that
from tests.support.readers import assert_readers_agree
from tests.support.spark import LOCAL
from tests.support.storage import exactly_the_committed_files
from tests.system.disturbed import Disturbed, disturbed_writes
from tests.system.spark.jobs import wide_rows, write

pytestmark = pytest.mark.spark

BY_GROUP, BY_SIGNAL = "a task is held, and its group cancelled", "a task is held"
SHORT_LEASE = "a task is held, and the lease is short"


@pytest.fixture(scope="module")
def cancelled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Disturbed]]:
    folder, prepare = tmp_path_factory.mktemp("cancelled"), partial(write, wide_rows(spark))
    with disturbed_writes(LOCAL, folder, BY_GROUP, BY_SIGNAL, prepare=prepare) as jobs:
        yield jobs


def test_a_task_that_goes_on_after_cancel_job_group_cannot_publish(cancelled: dict[str, Disturbed]) -> None:
    job = cancelled[BY_GROUP]
    assert job.outcome() == {"error": "JobFailed"}
    assert_it_left_nothing(job)


def test_a_task_that_goes_on_after_ctrl_c_cannot_publish(cancelled: dict[str, Disturbed]) -> None:
    job = cancelled[BY_SIGNAL]
    job.held()
    os.killpg(job.driver, signal.SIGINT)
    assert job.outcome() == {"error": "KeyboardInterrupt"}
    assert_it_left_nothing(job)


def assert_it_left_nothing(job: Disturbed) -> None:
    before = exactly_the_committed_files(job.table)
    assert len(before) == 6
    assert job.release().error == "Sealed", "its task went on, up to its files"
    assert exactly_the_committed_files(job.table) == before


@pytest.mark.release
def test_a_driver_that_stood_still_beyond_its_lease_is_rolled_back_and_learns_it_while_its_tasks_still_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    old, more = wide_rows(spark), wide_rows(spark, version=2)
    with disturbed_writes(LOCAL, tmp_path, SHORT_LEASE, prepare=partial(write, old)) as jobs:
        job = jobs[SHORT_LEASE]
        job.held()
        os.kill(job.driver, signal.SIGSTOP)
        await_stopped(job.driver)
        [ended] = await_that(lambda: anyio.run(tallymark.open_table(job.table).rollback), "its lease is over")
        assert ended.outcome == "rolled back"
        assert ended.marked >= 3
        assert len(exactly_the_committed_files(job.table, scratch=True)) == 6, "it may stand in the middle of a put"
        write(more, job.table)
        committed = exactly_the_committed_files(job.table, scratch=True)
        os.kill(job.driver, signal.SIGCONT)
        assert job.outcome() == {"error": "RolledBack"}
        assert [task.task for task in job.told()] == [1], "the other still runs"
        assert exactly_the_committed_files(job.table) == committed
        assert job.release().error == "Sealed"
        assert exactly_the_committed_files(job.table) == committed
        assert_readers_agree(spark, job.table, old.unionAll(more))
