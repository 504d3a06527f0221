"""A driver stands still (SIGSTOP) for longer than its lease, is rolled back by another writer, and goes on (SIGCONT).

On one machine a stopped process is alive: it is its lease that tells others. The lease here is short, and long beside
what a beat takes on a busy machine.
"""

import os
import signal
import time
from pathlib import Path
from typing import Literal

import pytest

from tallymark import LeaseSettings
from tests.support.process import await_that
from tests.support.storage import data_files
from tests.system.forked import Fork, Start
from tests.system.pool_driver import JobBegun, JobEnded, WritePlan, drive
from tests.system.pool_worker import AttemptEnded, TaskPlan
from tests.system.rigged import Fault
from tests.system.scene import BASE, RIVAL, append, assert_at_rest, outcomes, rows_of, stopped_tasks

LEASE = LeaseSettings(heartbeat_interval_s=0.1, expiry_s=8.0)
BEFORE_ENTRY = Fault(verb="put_new", path=".hoodie/.tallymark/log/*", when="before", signal=signal.SIGSTOP)
MODES = ("append", "whole overwrite")
ROLLED_BACK = ["commit", "rollback", "commit"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    append(tmp_path / "table", *BASE)
    return tmp_path / "table"


def wide_task(number: int, stops: Literal["in mid file", "between files"]) -> TaskPlan:
    """Files of 2.5 MB; the driver does not wait for it."""
    first = 1000 * (number + 1)
    return TaskPlan(task=number, first_id=first, row_count=64, width=40_000, stops=stops, is_awaited=False)


def let_lease_pass(table: Path, instant: str) -> None:
    """By the store's clock alone, as the other writer will look at it."""
    beat, fresh = table / ".hoodie/.tallymark/beat" / instant, table.parent / "now"

    def has_passed() -> bool:
        fresh.touch()
        return fresh.stat().st_mtime - beat.stat().st_mtime > LEASE.expiry_s

    await_that(has_passed, "the lease has passed")


def assert_learns_within_one_beat(driver: Fork) -> None:
    """It goes on, and is told that it was rolled back by the first beat that it makes, if not before."""
    resumed = time.monotonic()
    driver.signal(signal.SIGCONT)
    ended = driver.hear(JobEnded)
    assert ended.outcome == "RolledBack"
    since = [beat - resumed for beat in ended.beats if beat > resumed]
    assert len(since) <= 1, f"beats begun at {since} s after it was resumed"
    assert len(ended.beats) > len(since), "it had beaten before"
    driver.await_all()


@pytest.mark.parametrize("mode", MODES)
def test_a_driver_that_was_paused_while_its_tasks_wrote_is_rolled_back_and_learns_it(
    table: Path, start: Start, mode
) -> None:
    """One task goes on while the driver stands still, and cannot publish; one asks it for a marker as it goes on.

    The driver itself waits for something else meanwhile: only its beats look at the log.
    """
    tasks = (
        wide_task(0, "in mid file"),
        wide_task(1, "between files"),
    )
    plan = WritePlan(table=str(table), mode=mode, tasks=tasks, lease=LEASE, loop="asyncio", waits="to end")
    driver = start(drive, plan)
    instant = driver.hear(JobBegun).instant
    publishing, asking = stopped_tasks(driver)
    driver.signal(signal.SIGSTOP)
    driver.await_stopped()
    let_lease_pass(table, instant)
    append(table, RIVAL)
    committed = assert_at_rest(table, rows_of(*BASE, RIVAL), scratch=True)
    os.kill(publishing.pid, signal.SIGCONT)
    assert driver.hear(AttemptEnded) == AttemptEnded(0, 0, "Sealed")
    assert data_files(table) == committed
    os.kill(asking.pid, signal.SIGCONT)
    assert_learns_within_one_beat(driver)
    assert driver.hear(AttemptEnded).outcome in ("Sealed", "RolledBack")
    assert assert_at_rest(table, rows_of(*BASE, RIVAL)) == committed
    assert outcomes(table) == ROLLED_BACK


@pytest.mark.parametrize("mode", MODES)
def test_a_driver_that_was_paused_between_seal_and_entry_cannot_commit(table: Path, start: Start, mode) -> None:
    tasks = (TaskPlan(task=0, first_id=1000), TaskPlan(task=1, first_id=2000))
    driver = start(drive, WritePlan(table=str(table), mode=mode, tasks=tasks, lease=LEASE, fault=BEFORE_ENTRY))
    instant = driver.hear(JobBegun).instant
    driver.await_stopped()
    let_lease_pass(table, instant)
    append(table, RIVAL)
    committed = assert_at_rest(table, rows_of(*BASE, RIVAL), scratch=True)
    assert_learns_within_one_beat(driver)
    assert assert_at_rest(table, rows_of(*BASE, RIVAL)) == committed
    assert outcomes(table) == ROLLED_BACK
