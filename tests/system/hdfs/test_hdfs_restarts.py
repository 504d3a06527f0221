"""Parts of a real HDFS die in the middle of a job: it ends in bounded time, and the next write leaves nothing stray."""

import signal
import threading
from collections.abc import Callable
from functools import partial

import anyio
import pytest

from tallymark.backends import NotPermitted
from tallymark.engine.errors import TallymarkError
from tallymark.engine.markers import open_marker_engine
from tests.backends.hdfs_peek import HdfsPeek
from tests.invariants import markers_in
from tests.support.place import Place
from tests.support.process import send
from tests.support.services.minidfs import MiniDfs
from tests.system.forked import Fork, Start
from tests.system.pool_driver import JobEnded, WritePlan, drive
from tests.system.pool_worker import TaskPlan
from tests.system.scene import RIVAL, append, assert_at_rest, rows_of, stopped_tasks

pytestmark = pytest.mark.release

INSTANT = "20260101000000000"

ENOUGH = 100
"""Markers that are acked before the DataNode dies; six times as many are asked for."""

FIRST = TaskPlan(first_id=1)
"""What the table holds before anything goes wrong."""

WIDE = tuple(
    TaskPlan(task=task, first_id=1000 * (task + 1), parts=("a",), row_count=8, width=400_000, stops="in mid file")
    for task in range(2)
)
"""Half of it is more than what is buffered, so that the DataNodes hold bytes of open files."""


@pytest.fixture
def peek(dfs) -> HdfsPeek:
    peek = HdfsPeek(dfs)
    append(place_of(peek), FIRST)
    return peek


def place_of(peek: HdfsPeek) -> Place:
    """Listed around the library."""
    return Place(url=peek.backend.url, objects=peek.objects)


def half_written(peek: HdfsPeek, start: Start) -> tuple[Fork, Callable[[], None]]:
    """Another process that writes to the table, each of its tasks in mid file; the second lets the tasks go on."""
    driver = start(drive, WritePlan(table=peek.backend.url, tasks=WIDE))
    tasks = stopped_tasks(driver)
    return driver, partial(send, signal.SIGCONT, [task.pid for task in tasks])


def assert_next_write_puts_it_in_order(peek: HdfsPeek, *expected: TaskPlan) -> None:
    append(place_of(peek), RIVAL)
    assert_at_rest(place_of(peek), rows_of(*expected, RIVAL))


def restart_namenode(dfs: MiniDfs) -> None:
    with dfs.namenode_down():
        threading.Event().wait(2)


def restart_all(dfs: MiniDfs) -> None:
    dfs.crash()
    dfs.restart()


@pytest.mark.parametrize("restart", [restart_namenode, restart_all])
def test_a_job_whose_cluster_restarts_finishes_or_fails_in_bounded_time_and_leaves_nothing(peek, start, restart):
    driver, go_on = half_written(peek, start)
    restart(peek.dfs)
    go_on()
    outcome = driver.hear(JobEnded).outcome
    print(outcome)
    driver.await_all()
    assert_next_write_puts_it_in_order(peek, FIRST, *(WIDE if outcome == "committed" else ()))


def test_a_job_whose_namenode_stays_away_fails_in_bounded_time_and_leaves_nothing(peek, start):
    driver, go_on = half_written(peek, start)
    with peek.dfs.namenode_down():
        go_on()
        assert driver.hear(JobEnded).outcome != "committed"
        driver.await_all()
    assert_next_write_puts_it_in_order(peek, FIRST)


def test_a_killed_writers_open_files_go_with_the_next_write(peek, start):
    driver, _ = half_written(peek, start)
    assert any(path.endswith(".tmp") for path in peek.objects())
    driver.end()
    assert_next_write_puts_it_in_order(peek, FIRST)


def test_no_marker_is_lost_that_was_acked_before_or_after_a_datanode_died(peek):
    acked: set[str] = set()
    refused: list[TallymarkError] = []

    async def ask(directory, caller: int) -> None:
        for number in range(15):
            names = [f"p={caller}/{number}-{n}.parquet" for n in range(5)]
            try:
                await directory.create(*names)
            except TallymarkError as error:
                refused.append(error)
                return
            acked.update(names)
            if len(acked) >= ENOUGH:
                enough.set()

    async def main() -> None:
        async with open_marker_engine(peek.backend) as engine, anyio.create_task_group() as callers:
            for caller in range(8):
                callers.start_soon(ask, engine.directory(INSTANT), caller)
            await enough.wait()
            await anyio.to_thread.run_sync(down.__enter__)

    enough, down = anyio.Event(), peek.dfs.datanode_down()
    try:
        anyio.run(main, backend="trio")
    finally:
        down.__exit__(None, None, None)
    assert len(acked) >= ENOUGH
    assert {(INSTANT, f"{name}.marker.CREATE") for name in acked} <= markers_in(peek.objects())
    assert not refused


def test_what_hdfs_refuses_leaves_the_table_as_it_was(peek, monkeypatch):
    before = peek.objects()

    with monkeypatch.context() as patch:
        patch.setenv("HADOOP_USER_NAME", "mallory")
        with pytest.raises(NotPermitted, match="user=mallory"):
            append(place_of(peek), RIVAL)
    with peek.dfs.space_quota(peek.root, 1), pytest.raises(NotPermitted, match="make room"):
        append(place_of(peek), RIVAL)
    beats = ".hoodie/.tallymark/beat/"  # of nobody: the next writers sweep them after a lease
    assert {path: data for path, data in peek.objects().items() if not path.startswith(beats)} == before


def test_ten_thousand_markers_are_few_objects(peek):
    names = [f"p={number % 50}/{number}.parquet" for number in range(10_000)]

    async def main() -> None:
        async with open_marker_engine(peek.backend) as engine, anyio.create_task_group() as callers:
            for caller in range(200):
                callers.start_soon(partial(engine.directory(INSTANT).create, *names[caller::200]))

    anyio.run(main, backend="trio")
    objects = peek.objects()
    assert markers_in(objects) == {(INSTANT, f"{name}.marker.CREATE") for name in names}
    segments = [path for path in objects if "/MARKERS" in path and not path.endswith("MARKERS.type")]
    assert len(segments) <= 50
