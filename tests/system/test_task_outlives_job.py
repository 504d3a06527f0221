"""A task of a real process stands still while its job ends without it, and goes on: nothing of it is to be seen."""

import os
import signal
from pathlib import Path

import anyio
import pytest

import tallymark
from tests.support.process import await_stopped
from tests.support.storage import data_files, files
from tests.system.forked import Fork, Start
from tests.system.pool_driver import SHORT_WAIT_S, End, JobBegun, JobEnded, Waiting, WritePlan, drive
from tests.system.pool_worker import AttemptEnded, Stopped, TaskPlan
from tests.system.rigged import Fault
from tests.system.scene import BASE, append, assert_at_rest, rows_of

STOPS = ("in mid file", "between files")
STOPPED_BEFORE_ENTRY = Fault(verb="put_new", path=".hoodie/.tallymark/log/*", when="before", signal=signal.SIGSTOP)
OTHER_TASK = TaskPlan(task=1, first_id=2000)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    append(tmp_path / "table", *BASE)
    return tmp_path / "table"


def straggler(stops) -> TaskPlan:
    """Files of 2.5 MB; nobody waits for it."""
    return TaskPlan(task=0, first_id=1000, row_count=64, width=40_000, stops=stops, is_awaited=False, is_winner=False)


def second_attempt(first: TaskPlan) -> TaskPlan:
    return TaskPlan(task=first.task, attempt=1, first_id=first.first_id, row_count=first.row_count, width=first.width)


def start_and_await_stop(start: Start, write: WritePlan) -> tuple[Fork, Stopped]:
    """One task stands still, and the driver waits before the job ends."""
    driver = start(drive, write)
    task = driver.hear(Stopped)
    await_stopped(task.pid)
    driver.hear(Waiting)
    return driver, task


def assert_goes_on_in_vain(driver: Fork, table: Path, task: Stopped, rows) -> None:
    """The disk is as it should be before and after, and shows no other data file in between."""
    before = assert_at_rest(table, rows)
    os.kill(task.pid, signal.SIGCONT)
    while not driver.has_said(AttemptEnded):
        assert data_files(table) == before
    assert driver.hear(AttemptEnded) == AttemptEnded(task.task, task.attempt, "Sealed")
    driver.await_all()
    assert assert_at_rest(table, rows) == before


@pytest.mark.parametrize("end", ["committed", "left", "cancelled"])
@pytest.mark.parametrize("stops", STOPS)
def test_a_task_that_goes_on_after_its_job_has_ended_leaves_nothing(table: Path, start: Start, stops, end: End) -> None:
    late = straggler(stops)
    write = WritePlan(table=str(table), tasks=(late, second_attempt(late), OTHER_TASK), end=end, waits="to end")
    driver, task = start_and_await_stop(start, write)
    assert [name for name in files(table) if "/staged/" in name] != [], "it holds a file that is not whole"
    driver.tell("go")
    assert driver.hear(JobEnded).outcome == end
    assert driver.wait() == 0
    assert {driver.hear(AttemptEnded).outcome for _ in range(2)} == {"reported"}
    assert_goes_on_in_vain(driver, table, task, rows_of(*BASE) + (write.rows if end == "committed" else []))


@pytest.mark.parametrize("stops", STOPS)
def test_a_task_that_goes_on_after_its_job_was_rolled_back_by_another_leaves_nothing(
    table: Path, start: Start, stops
) -> None:
    """Its driver lives, and is told by its own next look at the log."""
    write = WritePlan(table=str(table), tasks=(straggler(stops), OTHER_TASK), waits="to end")
    driver, task = start_and_await_stop(start, write)
    instant = driver.hear(JobBegun).instant
    assert driver.hear(AttemptEnded).outcome == "reported"
    [ended] = anyio.run(tallymark.open_table(table).rollback, instant)
    assert ended.outcome == "rolled back"
    driver.tell("go")
    assert driver.hear(JobEnded).outcome == "RolledBack"
    assert_goes_on_in_vain(driver, table, task, rows_of(*BASE))


@pytest.mark.parametrize("stops", STOPS)
def test_a_task_that_goes_on_between_seal_and_entry_of_its_job_leaves_nothing(table: Path, start: Start, stops) -> None:
    """The losers' files have been deleted by then, and the job has not ended."""
    late = straggler(stops)
    tasks = (late, second_attempt(late), OTHER_TASK)
    write = WritePlan(
        table=str(table), tasks=tasks, fault=STOPPED_BEFORE_ENTRY, waits="to end", marker_wait_s=SHORT_WAIT_S
    )
    driver, task = start_and_await_stop(start, write)
    assert {driver.hear(AttemptEnded).outcome for _ in range(2)} == {"reported"}
    driver.tell("go")
    driver.await_stopped()
    before = data_files(table)
    os.kill(task.pid, signal.SIGCONT)
    assert driver.hear(AttemptEnded).outcome in ("Sealed", "ServiceUnavailable")
    assert data_files(table) == before
    driver.signal(signal.SIGCONT)
    assert driver.hear(JobEnded).outcome == "committed"
    driver.await_all()
    assert assert_at_rest(table, rows_of(*BASE, *tasks[1:])) == before


@pytest.mark.parametrize("winner", [0, 1])
def test_of_speculative_twins_that_both_finish_and_report_exactly_one_leaves_its_files(
    table: Path, start: Start, winner: int
) -> None:
    twins = [TaskPlan(task=0, attempt=attempt, first_id=1000, is_winner=attempt == winner) for attempt in (0, 1)]
    write = WritePlan(table=str(table), tasks=(*twins, OTHER_TASK), waits="to end")
    driver = start(drive, write)
    driver.hear(Waiting)
    instant = driver.hear(JobBegun).instant
    assert [len(written_by(table, instant, twin)) for twin in twins] == [2, 2]
    driver.tell("go")
    assert driver.hear(JobEnded).outcome == "committed"
    driver.await_all()
    assert_at_rest(table, rows_of(*BASE) + write.rows)
    assert [len(written_by(table, instant, twin)) for twin in twins] == ([2, 0] if winner == 0 else [0, 2])


def written_by(table: Path, instant: str, twin: TaskPlan) -> set[str]:
    return {name for name in data_files(table) if name.endswith(f"-0_{twin.task}-0-{twin.attempt}_{instant}.parquet")}
