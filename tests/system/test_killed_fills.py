"""Drivers and tasks that fill small files die by SIGKILL, on a local disk and on S3, where only such writes come.

The stages of ``test_killed_driver`` are played with fills there. The next write, which fills small files itself, leaves
exactly what was committed: no row is lost, or there twice.
"""

from dataclasses import replace

import anyio
import pytest

from tests.support.process import await_that, members
from tests.system.forked import Fork, Start
from tests.system.pool_driver import JobEnded, Waiting, WritePlan, drive
from tests.system.pool_worker import Doomed, TaskPlan
from tests.system.rigged import Fault
from tests.system.scene import BASE, append, assert_at_rest, assert_next_write_restores, place_of, rows_of
from tests.system.test_killed_driver import At, at, await_killed, plan
from tests.table_invariants import commits

__all__ = ["at"]

pytestmark = pytest.mark.parametrize("store", ["local", pytest.param("s3", marks=pytest.mark.release)])

OTHER = TaskPlan(first_id=5000)
"""Of another write, for the same parts."""

OWN_ENTRY = ".hoodie/.tallymark/log/*3"
"""After those of the table's first rows and of the other write, whose number was tried first."""

CUT_AND_NOT_COMMITTED = {
    "when it has read what it had written": Fault(verb="get", path="part=*", when="after"),
    "after the marker of what it cuts": Fault(verb="put_new", path=".hoodie/.temp/*.marker.CREATE", when="after"),
    "before the lost file goes": Fault(verb="delete", path="part=*", when="before"),
    "when the lost file has gone": Fault(verb="delete", path="part=*", when="after"),
    "before its entry": Fault(verb="put_new", path=OWN_ENTRY, when="before"),
}
CUT_AND_COMMITTED = Fault(verb="put_new", path=OWN_ENTRY, when="after")


def filling(at: At, fault: Fault | None = None) -> WritePlan:
    """It waits when its tasks have reported."""
    return replace(plan(at, "fill", fault), waits="to end")


@pytest.mark.parametrize("dies", ["with old rows", "with its files in place"])
def test_another_attempt_of_a_killed_task_fills_what_it_was_to_fill(at: At, start: Start, dies) -> None:
    killed = TaskPlan(task=0, first_id=1000, dies=dies, is_awaited=False, is_winner=False)
    again = TaskPlan(task=0, attempt=1, first_id=1000)
    write = filling(at)
    driver = start(drive, replace(write, tasks=(killed, again, write.tasks[1])))
    doomed = driver.hear(Doomed)
    await_that(lambda: doomed.pid not in members(driver.pid), "the first attempt is killed")
    driver.hear(Waiting)
    driver.tell("go on")
    assert driver.hear(JobEnded).outcome == "committed"
    driver.await_all()
    assert len(commits(place_of(at).objects())[-1]["removed"]) == 2
    assert_at_rest(at, rows_of(*BASE) + filling(at).rows)


def lose_its_small_files(at: At, driver: Fork) -> None:
    """Another write fills them, which does not heed that they are being filled; then the driver commits."""
    driver.hear(Waiting)
    claims = [path for path in place_of(at).objects() if path.endswith("/FILLS")]
    assert len(claims) == 1

    async def forget() -> None:
        await place_of(at).backend().delete(claims)

    anyio.run(forget, backend="trio")
    append(at, OTHER, fills=True)
    driver.tell("go on")


@pytest.mark.parametrize("point", CUT_AND_NOT_COMMITTED)
def test_a_driver_that_is_killed_while_it_cuts_lost_fills_anew_leaves_nothing(at: At, start: Start, point) -> None:
    driver = start(drive, filling(at, CUT_AND_NOT_COMMITTED[point]))
    lose_its_small_files(at, driver)
    await_killed(driver)
    assert_next_write_restores(at, rows_of(*BASE, OTHER), ["commit", "commit", "rollback", "commit"], fills=True)


def test_a_driver_that_is_killed_when_it_has_committed_what_it_cut_anew_has_lost_no_row(at: At, start: Start) -> None:
    driver = start(drive, filling(at, CUT_AND_COMMITTED))
    lose_its_small_files(at, driver)
    await_killed(driver)
    assert not commits(place_of(at).objects())[-1]["removed"]
    assert_next_write_restores(
        at, rows_of(*BASE, OTHER) + filling(at).rows, ["commit", "commit", "commit", "commit"], fills=True
    )


def test_a_driver_that_lost_all_that_it_filled_commits_its_own_rows(at: At, start: Start) -> None:
    driver = start(drive, filling(at))
    lose_its_small_files(at, driver)
    assert driver.hear(JobEnded).outcome == "committed"
    driver.await_all()
    assert_at_rest(at, rows_of(*BASE, OTHER) + filling(at).rows)
