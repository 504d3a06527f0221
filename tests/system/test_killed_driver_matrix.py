"""A driver of real processes dies by SIGKILL, at each stage of each kind of write; the next write leaves exactly what
was committed. What is left of the dead job's pool goes on afterwards, and changes nothing."""

import signal
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.process import send
from tests.support.storage import data_files, files, objects
from tests.system.forked import Fork, Start
from tests.system.pool_driver import EAGER, SHORT_WAIT_S, Loop, WriteMode, WritePlan, drive
from tests.system.pool_worker import AttemptEnded, Row, Stops, TaskPlan
from tests.system.rigged import Fault
from tests.system.scene import BASE, RIVAL, append, assert_at_rest, outcomes, rows_of, stopped_tasks
from tests.table_invariants import table_is_at_rest

OVERWRITES: tuple[WriteMode, ...] = ("whole overwrite", "dynamic overwrite")
MODES = ("append", *(pytest.param(mode, marks=pytest.mark.slow) for mode in OVERWRITES))

STAGED = ".hoodie/.temp/*/staged"
BEFORE_SEAL = Fault(verb="close_staging", path=STAGED, when="before")

BEFORE_ITS_ENTRY = {
    "before the first marker": Fault(verb="put_new", path=".hoodie/.temp/*/MARKERS1*", when="before"),
    "after all data": BEFORE_SEAL,
    "after seal": Fault(verb="close_staging", path=STAGED, when="after"),
}
AFTER_ITS_ENTRY = {
    "after the log entry": Fault(verb="put_new", path=".hoodie/.tallymark/log/*", when="after"),
    "after the projection": Fault(verb="put_new", path=".hoodie/2*commit", when="after"),
    "during clean": Fault(verb="delete", path="part=*", when="half way"),
}
WHILE_TASKS_WRITE: dict[str, Stops] = {"between markers": "between files", "while writing": "in mid file"}

DURING_ROLLBACK = Fault(verb="delete", path="part=*", when="half way")
DURING_CLEAN_OF_AN_APPEND = Fault(verb="delete", path=".hoodie/.temp/*", when="half way")
"""It has replaced nothing: it drops its markers."""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    append(tmp_path / "table", *BASE)
    return tmp_path / "table"


def plan(table: Path, mode: WriteMode, fault: Fault | None = None, **task) -> WritePlan:
    """Two tasks in two of the table's three parts; trio or asyncio."""
    tasks = (TaskPlan(task=0, first_id=1000, **task), TaskPlan(task=1, first_id=2000, **task))
    loop: Loop = "asyncio" if mode == "whole overwrite" else "trio"
    return WritePlan(
        table=str(table), mode=mode, tasks=tasks, fault=fault, loop=loop, marker_wait_s=marker_wait_s(fault, tasks)
    )


def marker_wait_s(fault: Fault | None, tasks: Iterable[TaskPlan]) -> float:
    """Short where none comes."""
    is_without = fault == BEFORE_ITS_ENTRY["before the first marker"] or any(task.stops != "never" for task in tasks)
    return SHORT_WAIT_S if is_without else EAGER.marker_wait_s


def run_until_killed(start: Start, write: WritePlan) -> Fork:
    driver = start(drive, write)
    assert driver.wait() == -signal.SIGKILL
    return driver


def after(write: WritePlan) -> list[Row]:
    """What the table holds once the write has been committed."""
    base = rows_of(*BASE)
    match write.mode:
        case "append":
            return base + write.rows
        case "whole overwrite":
            return write.rows
        case _:
            return [row for row in base if row[1] == "c"] + write.rows


def assert_next_write_restores(table: Path, rows: list[Row], log: list[str]) -> set[str]:
    with pytest.raises(AssertionError):
        table_is_at_rest(objects(table))  # else the kill came too late to leave anything
    append(table, RIVAL)
    assert outcomes(table) == log
    return assert_at_rest(table, rows + rows_of(RIVAL), scratch=True)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("point", BEFORE_ITS_ENTRY)
def test_a_driver_that_is_killed_before_its_entry_leaves_nothing(table: Path, start: Start, point, mode) -> None:
    driver = run_until_killed(start, plan(table, mode, BEFORE_ITS_ENTRY[point]))
    driver.await_all()
    assert_next_write_restores(table, rows_of(*BASE), ["commit", "rollback", "commit"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("point", AFTER_ITS_ENTRY)
def test_a_driver_that_is_killed_after_its_entry_has_committed(table: Path, start: Start, point, mode) -> None:
    fault = AFTER_ITS_ENTRY[point]
    if (point, mode) == ("during clean", "append"):
        fault = DURING_CLEAN_OF_AN_APPEND
    write = plan(table, mode, fault)
    run_until_killed(start, write).await_all()
    assert_next_write_restores(table, after(write), ["commit", "commit", "commit"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("point", WHILE_TASKS_WRITE)
def test_a_driver_that_is_killed_while_its_tasks_write_leaves_nothing(table: Path, start: Start, point, mode) -> None:
    """One of its tasks goes on before the next write, one after it."""
    driver = start(drive, plan(table, mode, stops=WHILE_TASKS_WRITE[point], row_count=64, width=40_000))
    tasks = stopped_tasks(driver)
    driver.kill()
    assert_begun(table, point)
    send(signal.SIGCONT, [tasks[0].pid])
    assert driver.hear(AttemptEnded) == AttemptEnded(0, 0, "ServiceUnavailable")
    assert len(data_files(table)) == 7, "it has published its first file, and was told of no marker for a second"
    committed = assert_next_write_restores(table, rows_of(*BASE), ["commit", "rollback", "commit"])
    send(signal.SIGCONT, [tasks[1].pid])
    assert driver.hear(AttemptEnded).outcome in ("Sealed", "ServiceUnavailable")
    driver.await_all()
    assert assert_at_rest(table, rows_of(*BASE, RIVAL), scratch=True) == committed


def assert_begun(table: Path, point: str) -> None:
    """Files lie in the staging directory: half of one, or all of its bytes but for what ends it."""
    sizes = [(table / name).stat().st_size for name in files(table) if "/staged/" in name]
    assert len(sizes) == 2
    least, most = (1, 2.4e6) if point == "while writing" else (2.0e6, 5e6)
    assert all(least < size < most for size in sizes), sizes


@pytest.mark.parametrize("mode", MODES)
def test_a_driver_that_is_killed_while_it_rolls_another_back_leaves_nothing_of_either(
    table: Path, start: Start, mode
) -> None:
    run_until_killed(start, plan(table, mode, BEFORE_SEAL)).await_all()
    dead = data_files(table)
    run_until_killed(start, plan(table, mode, DURING_ROLLBACK)).await_all()
    assert len(data_files(table)) == len(dead) - 2, "half of the files of the first were deleted"
    assert_next_write_restores(table, rows_of(*BASE), ["commit", "rollback", "rollback", "commit"])
