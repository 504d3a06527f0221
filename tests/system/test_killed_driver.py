"""A driver that is not Spark's dies by SIGKILL at each stage of each kind of write, on a local disk, S3, GCS or HDFS.

The next write leaves exactly what was committed. What is left of the dead job's pool goes on afterwards, and changes
nothing. A local disk has every stage of every kind of write, the other stores have each stage once.
"""

import signal
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import pytest

from tests.support.place import Place, place_on
from tests.support.process import send
from tests.support.services.s3_server import ENVIRONMENT
from tests.support.storage import files
from tests.system.forked import Fork, Start
from tests.system.pool_driver import EAGER, SHORT_WAIT_S, Loop, WriteMode, WritePlan, drive
from tests.system.pool_worker import AttemptEnded, Row, Stops, TaskPlan
from tests.system.rigged import Fault
from tests.system.scene import (
    BASE,
    RIVAL,
    append,
    assert_at_rest,
    assert_next_write_restores,
    place_of,
    rows_of,
    stopped_tasks,
)
from tests.table_invariants import commits

At = Path | Place

Mode = WriteMode | Literal["fill"]
"""The last is an append that fills small files, and is followed by one that does so, too."""

OVERWRITES: tuple[WriteMode, ...] = ("whole overwrite", "dynamic overwrite")
MODES: tuple[Mode, ...] = ("append", "fill", *OVERWRITES)

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

DURING_CLEAN_OF_AN_APPEND = Fault(verb="delete", path=".hoodie/.temp/*", when="half way")
"""It has replaced nothing: it drops its markers."""
DURING_ROLLBACK = Fault(verb="delete", path="part=*", when="half way")
DURING_FENCING = Fault(verb="delete", path="part=*", when="after")
"""Where names are fenced, files are deleted one by one."""


def cases(points: Iterable[str], *elsewhere: tuple[str, WriteMode]) -> Sequence[object]:
    """Return the store, the point and the kind of write of each case; ``elsewhere`` has those of the other stores.

    Small files are filled on S3, too.
    """
    local = [
        pytest.param("local", point, mode, marks=pytest.mark.slow if mode in OVERWRITES else ())
        for point in points
        for mode in MODES
    ]
    others = [
        pytest.param(store, point, mode, marks=() if store == "s3" else pytest.mark.release)
        for store in ("s3", "gcs", "hdfs")
        for point, mode in elsewhere
    ]
    fills = [pytest.param("s3", point, "fill", marks=pytest.mark.release) for point in points]
    return local + others + fills


@pytest.fixture
def at(request: pytest.FixtureRequest, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> At:
    """A table with six files in three parts."""
    found = tmp_path / "table" if store == "local" else place_on(store, request)  # its server's keys outlive the test's
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    append(found, *BASE)
    return found


def plan(at: At, mode: Mode, fault: Fault | None = None, **task) -> WritePlan:
    """Two tasks in two of the table's three parts; trio or asyncio."""
    tasks = (TaskPlan(task=0, first_id=1000, **task), TaskPlan(task=1, first_id=2000, **task))
    loop: Loop = "asyncio" if mode == "whole overwrite" else "trio"
    place = place_of(at)
    return WritePlan(
        table=place.url,
        options=place.options,
        environment={} if isinstance(at, Path) else ENVIRONMENT,
        mode="append" if mode == "fill" else mode,
        fills=mode == "fill",
        tasks=tasks,
        fault=fault,
        loop=loop,
        marker_wait_s=marker_wait_s(fault, tasks),
    )


def marker_wait_s(fault: Fault | None, tasks: Iterable[TaskPlan]) -> float:
    """Short where none comes."""
    is_without = fault == BEFORE_ITS_ENTRY["before the first marker"] or any(task.stops != "never" for task in tasks)
    return SHORT_WAIT_S if is_without else EAGER.marker_wait_s


def run_until_killed(start: Start, write: WritePlan) -> Fork:
    driver = start(drive, write)
    await_killed(driver)
    return driver


def await_killed(driver: Fork) -> None:
    assert driver.wait() == -signal.SIGKILL
    driver.await_all()


def after(write: WritePlan) -> list[Row]:
    """Return the rows of the table once the write has been committed."""
    base = rows_of(*BASE)
    match write.mode:
        case "append":
            return base + write.rows
        case "whole overwrite":
            return write.rows
        case _:
            return [row for row in base if row[1] == "c"] + write.rows


@pytest.mark.parametrize(
    ("store", "point", "mode"),
    cases(BEFORE_ITS_ENTRY, *zip(BEFORE_ITS_ENTRY, ("append", *OVERWRITES), strict=True)),
)
def test_a_driver_that_is_killed_before_its_entry_leaves_nothing(at: At, start: Start, point, mode) -> None:
    run_until_killed(start, plan(at, mode, BEFORE_ITS_ENTRY[point]))
    assert_next_write_restores(at, rows_of(*BASE), ["commit", "rollback", "commit"], fills=mode == "fill")


@pytest.mark.parametrize(
    ("store", "point", "mode"),
    cases(
        AFTER_ITS_ENTRY,
        ("after the log entry", "dynamic overwrite"),
        ("after the projection", "append"),
        ("during clean", "append"),
        ("during clean", "whole overwrite"),
    ),
)
def test_a_driver_that_is_killed_after_its_entry_has_committed(at: At, start: Start, point, mode) -> None:
    during_clean_of_an_append = (point, mode) == ("during clean", "append")
    write = plan(at, mode, DURING_CLEAN_OF_AN_APPEND if during_clean_of_an_append else AFTER_ITS_ENTRY[point])
    run_until_killed(start, write)
    assert bool(commits(place_of(at).objects())[-1]["removed"]) == (mode != "append")
    assert_next_write_restores(at, after(write), ["commit", "commit", "commit"], fills=mode == "fill")


@pytest.mark.parametrize(("store", "point", "mode"), cases(WHILE_TASKS_WRITE, ("while writing", "dynamic overwrite")))
def test_a_driver_that_is_killed_while_its_tasks_write_leaves_nothing(at: At, start: Start, point, mode) -> None:
    """One of its tasks goes on before the next write, one after it."""
    driver = start(drive, plan(at, mode, stops=WHILE_TASKS_WRITE[point], row_count=64, width=40_000))
    tasks = stopped_tasks(driver)
    driver.kill()
    if isinstance(at, Path):
        assert_files_are_unfinished(at, point)
    send(signal.SIGCONT, [tasks[0].pid])
    assert driver.hear(AttemptEnded) == AttemptEnded(0, 0, "ServiceUnavailable")
    assert len(place_of(at).data_files()) == 7, "it has published its first file, and had no marker for a second"
    log = ["commit", "rollback", "commit"]
    committed = assert_next_write_restores(at, rows_of(*BASE), log, fills=mode == "fill")
    send(signal.SIGCONT, [tasks[1].pid])
    assert driver.hear(AttemptEnded).outcome in ("Sealed", "ServiceUnavailable")
    driver.await_all()
    assert assert_at_rest(at, rows_of(*BASE, RIVAL), scratch=True) == committed


def assert_files_are_unfinished(table: Path, point: str) -> None:
    """Assert that files in the staging directory have half of their bytes, or all but the end."""
    sizes = [(table / name).stat().st_size for name in files(table) if "/staged/" in name]
    assert len(sizes) == 2
    least, most = (1, 2.4e6) if point == "while writing" else (2.0e6, 5e6)
    assert all(least < size < most for size in sizes), sizes


@pytest.mark.parametrize(("store", "point", "mode"), cases(["in a rollback"], ("in a rollback", "append")))
def test_a_driver_that_is_killed_while_it_rolls_another_back_leaves_nothing_of_either(
    at: At, start: Start, point, mode
) -> None:
    place = place_of(at)
    run_until_killed(start, plan(at, mode, BEFORE_SEAL))
    dead = place.data_files()
    run_until_killed(start, plan(at, mode, DURING_ROLLBACK if place.backend().has_staging else DURING_FENCING))
    left = place.data_files()
    assert left < dead, "some files of the first were deleted"
    if isinstance(at, Path):
        assert len(left) == len(dead) - 2, "half of them"
    log = ["commit", "rollback", "rollback", "commit"]
    assert_next_write_restores(at, rows_of(*BASE), log, fills=mode == "fill")
