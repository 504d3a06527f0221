"""A driver that is not Spark's dies by SIGKILL at each stage of a write to S3, GCS or HDFS.

The next write leaves exactly what was committed. ``test_killed_driver_matrix`` plays all stages of all kinds of writes
on a local disk.
"""

import signal

import pytest

from tests.support.place import Place, place_on
from tests.support.process import send
from tests.support.services.s3_server import ENVIRONMENT
from tests.system.forked import Fork, Start
from tests.system.pool_driver import WriteMode, WritePlan, drive
from tests.system.pool_worker import AttemptEnded, TaskPlan
from tests.system.rigged import Fault
from tests.system.scene import (
    BASE,
    RIVAL,
    append,
    assert_next_write_restores,
    assert_place_at_rest,
    rows_of,
    stopped_tasks,
)
from tests.system.test_killed_driver_matrix import (
    AFTER_ITS_ENTRY,
    BEFORE_ITS_ENTRY,
    BEFORE_SEAL,
    DURING_CLEAN_OF_AN_APPEND,
    DURING_ROLLBACK,
    after,
    marker_wait_s,
)

BEFORE: tuple[tuple[str, WriteMode], ...] = (
    ("before the first marker", "append"),
    ("after all data", "whole overwrite"),
    ("after seal", "dynamic overwrite"),
)
AFTER: tuple[tuple[str, WriteMode], ...] = (
    ("after the log entry", "dynamic overwrite"),
    ("after the projection", "append"),
    ("during clean", "append"),
    ("during clean", "whole overwrite"),
)

DURING_FENCING = Fault(verb="delete", path="part=*", when="after")
"""Where names are fenced, files are deleted one by one."""


OTHER_STORES = [pytest.param(store, marks=pytest.mark.release) for store in ("gcs", "hdfs")]


@pytest.fixture(params=["s3", *OTHER_STORES])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Place:
    found = place_on(request.param, request)  # first: its server's keys stay when those of this test go
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    append(found, *BASE)
    return found


def plan(place: Place, mode: WriteMode, fault: Fault | None = None, **task) -> WritePlan:
    tasks = (TaskPlan(task=0, first_id=1000, **task), TaskPlan(task=1, first_id=2000, **task))
    return WritePlan(
        table=place.url,
        options=place.options,
        environment=ENVIRONMENT,
        mode=mode,
        tasks=tasks,
        fault=fault,
        marker_wait_s=marker_wait_s(fault, tasks),
    )


def run_until_killed(start: Start, write: WritePlan) -> Fork:
    driver = start(drive, write)
    assert driver.wait() == -signal.SIGKILL
    driver.await_all()
    return driver


@pytest.mark.parametrize(("point", "mode"), BEFORE)
def test_a_driver_that_is_killed_before_its_entry_leaves_nothing(place: Place, start: Start, point, mode) -> None:
    run_until_killed(start, plan(place, mode, BEFORE_ITS_ENTRY[point]))
    assert_next_write_restores(place, rows_of(*BASE), ["commit", "rollback", "commit"])


@pytest.mark.parametrize(("point", "mode"), AFTER)
def test_a_driver_that_is_killed_after_its_entry_has_committed(place: Place, start: Start, point, mode) -> None:
    fault = DURING_CLEAN_OF_AN_APPEND if (point, mode) == ("during clean", "append") else AFTER_ITS_ENTRY[point]
    write = plan(place, mode, fault)
    run_until_killed(start, write)
    assert_next_write_restores(place, after(write), ["commit", "commit", "commit"])


def test_tasks_that_outlive_their_killed_driver_leave_nothing(place: Place, start: Start) -> None:
    """One of them goes on before the next write, one after it."""
    driver = start(drive, plan(place, "dynamic overwrite", stops="in mid file", row_count=64, width=40_000))
    tasks = stopped_tasks(driver)
    driver.kill()
    send(signal.SIGCONT, [tasks[0].pid])
    assert driver.hear(AttemptEnded) == AttemptEnded(0, 0, "ServiceUnavailable")
    assert len(place.data_files()) == 7, "it has published its first file, and was told of no marker for a second"
    assert_next_write_restores(place, rows_of(*BASE), ["commit", "rollback", "commit"])
    send(signal.SIGCONT, [tasks[1].pid])
    assert driver.hear(AttemptEnded).outcome in ("Sealed", "ServiceUnavailable")
    driver.await_all()
    assert_place_at_rest(place, rows_of(*BASE, RIVAL))


def test_a_driver_that_is_killed_while_it_rolls_another_back_leaves_nothing_of_either(
    place: Place, start: Start
) -> None:
    run_until_killed(start, plan(place, "append", BEFORE_SEAL))
    dead = place.data_files()
    fault = DURING_ROLLBACK if place.backend().has_staging else DURING_FENCING
    run_until_killed(start, plan(place, "whole overwrite", fault))
    assert len(place.data_files()) < len(dead), "some files of the first were deleted"
    assert_next_write_restores(place, rows_of(*BASE), ["commit", "rollback", "rollback", "commit"])
