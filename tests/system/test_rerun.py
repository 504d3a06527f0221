"""A scheduler's view: a job of real processes with a txn ends in one of many ways, and is run again as it was. The rows
are there once, for readers that nobody here wrote, and nothing else is."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.process import send
from tests.support.storage import objects
from tests.system.forked import Fork, Start
from tests.system.pool_driver import JobEnded, Waiting, WritePlan, drive
from tests.system.pool_worker import AttemptEnded
from tests.system.rigged import Fault
from tests.system.scene import BASE, append, assert_at_rest, outcomes, rows_of, stopped_tasks
from tests.system.test_killed_driver import (
    AFTER_ITS_ENTRY,
    BEFORE_ITS_ENTRY,
    BEFORE_SEAL,
    DURING_CLEAN_OF_AN_APPEND,
    DURING_ROLLBACK,
    OVERWRITES,
    WHILE_TASKS_WRITE,
    after,
    plan,
    run_until_killed,
)
from tests.table_invariants import commits

MODES = ("append", *(pytest.param(mode, marks=pytest.mark.release) for mode in OVERWRITES))
"""The matrix of killed drivers shows in ``full`` what an overwrite leaves; a rerun is that of an append."""

TXN = "night job:2026-11-21"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    append(tmp_path / "table", *BASE)
    return tmp_path / "table"


def named(table: Path, mode, fault: Fault | None = None, **task) -> WritePlan:
    """The plan of the matrix, with a txn."""
    return replace(plan(table, mode, fault, **task), txn=TXN)


def again(write: WritePlan) -> WritePlan:
    """As the scheduler starts it anew: nothing goes wrong this time."""
    tasks = tuple(replace(task, stops="never") for task in write.tasks)
    return replace(write, tasks=tasks, fault=None, end="committed", waits="never")


def run(start: Start, write: WritePlan) -> Fork:
    """To its end, which is the one planned."""
    driver = start(drive, write)
    assert driver.hear(JobEnded).outcome == write.end
    assert driver.wait() == 0
    return driver


def assert_there_once(table: Path, write: WritePlan, log: list[str]) -> None:
    assert [entry["txn"] for entry in commits(objects(table))].count(TXN) == 1
    assert outcomes(table) == log
    assert_at_rest(table, after(write), scratch=True)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("point", [*BEFORE_ITS_ENTRY, *AFTER_ITS_ENTRY])
def test_rerun_after_a_kill_writes_the_rows_where_there_is_no_entry_and_else_finishes(
    table: Path, start: Start, point, mode
) -> None:
    fault = {**BEFORE_ITS_ENTRY, **AFTER_ITS_ENTRY}[point]
    write = named(table, mode, DURING_CLEAN_OF_AN_APPEND if (point, mode) == ("during clean", "append") else fault)
    run_until_killed(start, write).await_all()
    run(start, again(write))
    assert_there_once(table, write, ["commit", *(["rollback"] if point in BEFORE_ITS_ENTRY else []), "commit"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("point", WHILE_TASKS_WRITE)
def test_rerun_after_a_kill_while_its_tasks_write_is_not_disturbed_by_them(
    table: Path, start: Start, point, mode
) -> None:
    """They go on when the rerun is over."""
    write = named(table, mode, stops=WHILE_TASKS_WRITE[point], row_count=64, width=40_000)
    driver = start(drive, write)
    tasks = stopped_tasks(driver)
    driver.kill()
    run(start, again(write))
    assert_there_once(table, write, ["commit", "rollback", "commit"])
    send(signal.SIGCONT, [task.pid for task in tasks])
    assert {driver.hear(AttemptEnded).outcome for _ in tasks} <= {"Sealed", "ServiceUnavailable"}
    driver.await_all()
    assert_there_once(table, write, ["commit", "rollback", "commit"])


@pytest.mark.parametrize("mode", MODES)
def test_rerun_of_a_rerun_that_was_killed_while_it_rolled_the_first_back(table: Path, start: Start, mode) -> None:
    write = named(table, mode, BEFORE_SEAL)
    run_until_killed(start, write).await_all()
    run_until_killed(start, replace(write, fault=DURING_ROLLBACK)).await_all()
    run(start, again(write))
    assert_there_once(table, write, ["commit", "rollback", "rollback", "commit"])


@pytest.mark.parametrize("mode", MODES)
def test_rerun_after_a_plain_failure_writes_the_rows_and_after_success_nothing_however_often(
    table: Path, start: Start, mode
) -> None:
    write = named(table, mode)
    run(start, replace(write, end="left"))
    for _ in range(3):
        run(start, again(write))
    assert_there_once(table, write, ["commit", "rollback", "commit"])


@pytest.mark.parametrize("mode", MODES)
def test_of_two_drivers_of_one_txn_at_once_one_commits_and_both_succeed(table: Path, start: Start, mode) -> None:
    write = named(table, mode)
    drivers = [start(drive, replace(write, waits="to end")) for _ in range(2)]
    for driver in drivers:
        driver.hear(Waiting)
    for driver in drivers:
        driver.tell("commit")
    assert [driver.hear(JobEnded).outcome for driver in drivers] == ["committed", "committed"]
    for driver in drivers:
        driver.await_all()
    assert sorted(outcomes(table)) == ["commit", "commit", "rollback"]
    assert_there_once(table, write, outcomes(table))


def test_the_first_write_of_a_table_may_be_run_again_too(tmp_path: Path, start: Start) -> None:
    write = named(tmp_path / "table", "append", BEFORE_SEAL)
    run_until_killed(start, write).await_all()
    for _ in range(2):
        run(start, again(write))
    assert outcomes(tmp_path / "table") == ["rollback", "commit"]
    assert_at_rest(tmp_path / "table", write.rows, scratch=True)


def test_rows_of_other_writes_stay_beside_those_of_the_txn(table: Path, start: Start) -> None:
    write = named(table, "append")
    run(start, write)
    run(start, replace(write, txn=None))
    run(start, again(write))
    assert_at_rest(table, rows_of(*BASE) + 2 * write.rows)
