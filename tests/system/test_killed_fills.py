"""Drivers and tasks that fill small files die by SIGKILL, on a local disk and on S3.

The next write, which fills small files itself, leaves exactly what was committed: no row is lost, or there twice.
"""

import signal
from pathlib import Path

import anyio
import pytest

from tallymark.backends.local import SCRATCH
from tests.support import storage
from tests.support.place import Place, place_on
from tests.support.process import await_that, members, send
from tests.support.services.s3_server import ENVIRONMENT
from tests.system.forked import Fork, Start
from tests.system.pool_driver import JobEnded, Waiting, WritePlan, drive
from tests.system.pool_worker import AttemptEnded, Doomed, TaskPlan
from tests.system.rigged import Fault
from tests.system.scene import (
    BASE,
    RIVAL,
    append,
    assert_at_rest,
    assert_next_write_restores,
    rows_of,
    stopped_tasks,
)
from tests.system.test_killed_driver import (
    AFTER_ITS_ENTRY,
    BEFORE_ITS_ENTRY,
    BEFORE_SEAL,
    DURING_FENCING,
    DURING_ROLLBACK,
    WHILE_TASKS_WRITE,
    marker_wait_s,
)
from tests.table_invariants import commits

TASKS = (TaskPlan(task=0, first_id=1000), TaskPlan(task=1, first_id=2000))

OTHER = TaskPlan(first_id=5000)
"""Of another write, for the same parts."""

CUT_AND_NOT_COMMITTED = {
    "when it has read what it had written": Fault(verb="get", path="part=*", when="after"),
    "after the marker of what it cuts": Fault(verb="put_new", path=".hoodie/.temp/*.marker.CREATE", when="after"),
    "before the lost file goes": Fault(verb="delete", path="part=*", when="before"),
    "when the lost file has gone": Fault(verb="delete", path="part=*", when="after"),
    "before its entry": Fault(verb="put_new", path=".hoodie/.tallymark/log/*", when="before"),
}
CUT_AND_COMMITTED = Fault(verb="put_new", path=".hoodie/.tallymark/log/*", when="after")


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.release)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """With two small files in each of three parts."""
    if request.param == "s3":
        found = place_on("s3", request)
    else:
        table = tmp_path / "table"
        found = Place(url=str(table), objects=lambda: without_scratch(storage.objects(table)))
    append(found, *BASE)
    return found


def without_scratch(objects: dict[str, bytes]) -> dict[str, bytes]:
    """A process that is killed in the middle of a put leaves some, which nobody reads."""
    return {path: data for path, data in objects.items() if not path.startswith(SCRATCH)}


def plan(place: Place, fault: Fault | None = None, *, tasks: tuple[TaskPlan, ...] = TASKS, **named) -> WritePlan:
    return WritePlan(
        table=place.url,
        options=place.options,
        environment=ENVIRONMENT,
        fills=True,
        tasks=tasks,
        fault=fault,
        marker_wait_s=marker_wait_s(fault, tasks),
        **named,
    )


def await_killed(driver: Fork) -> None:
    assert driver.wait() == -signal.SIGKILL
    driver.await_all()


@pytest.mark.parametrize("point", BEFORE_ITS_ENTRY)
def test_small_files_stay_that_a_killed_driver_had_filled_and_not_committed(place: Place, start: Start, point) -> None:
    await_killed(start(drive, plan(place, BEFORE_ITS_ENTRY[point])))
    assert_next_write_restores(place, rows_of(*BASE), ["commit", "rollback", "commit"], fills=True)


@pytest.mark.parametrize("point", AFTER_ITS_ENTRY)
def test_small_files_go_that_a_killed_driver_had_filled_and_committed(place: Place, start: Start, point) -> None:
    await_killed(start(drive, plan(place, AFTER_ITS_ENTRY[point])))
    assert len(commits(place.objects())[-1]["removed"]) == 2
    assert_next_write_restores(place, rows_of(*BASE, *TASKS), ["commit", "commit", "commit"], fills=True)


@pytest.mark.parametrize("dies", ["with old rows", "with its files in place"])
def test_another_attempt_of_a_killed_task_fills_what_it_was_to_fill(place: Place, start: Start, dies) -> None:
    killed = TaskPlan(task=0, first_id=1000, dies=dies, is_awaited=False, is_winner=False)
    again = TaskPlan(task=0, attempt=1, first_id=1000)
    driver = start(drive, plan(place, tasks=(killed, again, TASKS[1]), waits="to end"))
    doomed = driver.hear(Doomed)
    await_that(lambda: doomed.pid not in members(driver.pid), "the first attempt is killed")
    driver.hear(Waiting)
    driver.tell("go on")
    assert driver.hear(JobEnded).outcome == "committed"
    driver.await_all()
    assert len(commits(place.objects())[-1]["removed"]) == 2
    assert_at_rest(place, rows_of(*BASE, *TASKS))


@pytest.mark.parametrize("point", WHILE_TASKS_WRITE)
def test_tasks_that_outlive_their_killed_driver_bring_no_old_rows_back(place: Place, start: Start, point) -> None:
    """One of them goes on before the next write, one after it."""
    tasks = tuple(
        TaskPlan(task=number, first_id=1000 * (number + 1), stops=WHILE_TASKS_WRITE[point], row_count=64, width=40_000)
        for number in range(2)
    )
    driver = start(drive, plan(place, tasks=tasks))
    first, second = stopped_tasks(driver)
    driver.kill()
    send(signal.SIGCONT, [first.pid])
    assert driver.hear(AttemptEnded) == AttemptEnded(0, 0, "ServiceUnavailable")
    assert_next_write_restores(place, rows_of(*BASE), ["commit", "rollback", "commit"], fills=True)
    send(signal.SIGCONT, [second.pid])
    assert driver.hear(AttemptEnded).outcome in ("Sealed", "ServiceUnavailable")
    driver.await_all()
    assert_at_rest(place, rows_of(*BASE, RIVAL))


def test_a_driver_that_is_killed_while_it_rolls_fills_back_leaves_nothing_of_either(place: Place, start: Start) -> None:
    await_killed(start(drive, plan(place, BEFORE_SEAL)))
    filled = place.data_files()
    fault = DURING_ROLLBACK if place.backend().has_staging else DURING_FENCING
    await_killed(start(drive, plan(place, fault)))
    assert len(place.data_files()) < len(filled), "some of what the first had filled was deleted"
    assert_next_write_restores(place, rows_of(*BASE), ["commit", "rollback", "rollback", "commit"], fills=True)


def lose_its_small_files(place: Place, driver: Fork) -> None:
    """Another write fills them, which does not heed that they are being filled; then the driver commits."""
    driver.hear(Waiting)
    claims = [path for path in place.objects() if path.endswith("/FILLS")]
    assert len(claims) == 1

    async def forget() -> None:
        await place.backend().delete(claims)

    anyio.run(forget, backend="trio")
    append(place, OTHER, fills=True)
    driver.tell("go on")


@pytest.mark.parametrize("point", CUT_AND_NOT_COMMITTED)
def test_a_driver_that_is_killed_while_it_cuts_lost_fills_anew_leaves_nothing(
    place: Place, start: Start, point
) -> None:
    driver = start(drive, plan(place, CUT_AND_NOT_COMMITTED[point], waits="to end"))
    lose_its_small_files(place, driver)
    await_killed(driver)
    assert_next_write_restores(place, rows_of(*BASE, OTHER), ["commit", "commit", "rollback", "commit"], fills=True)


def test_a_driver_that_is_killed_when_it_has_committed_what_it_cut_anew_has_lost_no_row(
    place: Place, start: Start
) -> None:
    driver = start(drive, plan(place, CUT_AND_COMMITTED, waits="to end"))
    lose_its_small_files(place, driver)
    await_killed(driver)
    assert not commits(place.objects())[-1]["removed"]
    assert_next_write_restores(
        place, rows_of(*BASE, OTHER, *TASKS), ["commit", "commit", "commit", "commit"], fills=True
    )


def test_a_driver_that_lost_all_that_it_filled_commits_its_own_rows(place: Place, start: Start) -> None:
    driver = start(drive, plan(place, waits="to end"))
    lose_its_small_files(place, driver)
    assert driver.hear(JobEnded).outcome == "committed"
    driver.await_all()
    assert_at_rest(place, rows_of(*BASE, OTHER, *TASKS))
