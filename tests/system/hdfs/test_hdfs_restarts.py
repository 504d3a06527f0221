"""Parts of a real HDFS die in the middle of a job: it ends in bounded time, and the next write leaves nothing stray."""

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from tallymark.backends import NotPermitted
from tallymark.engine.errors import TallymarkError
from tallymark.engine.markers import open_marker_engine
from tests.backends.hdfs_peek import HdfsPeek
from tests.invariants import markers_in
from tests.support.process import await_that, end_session, start_program
from tests.support.services.minidfs import MiniDfs
from tests.system.hdfs.hdfs_jobs import committed_ids, ids, write
from tests.table_invariants import table_is_at_rest

pytestmark = pytest.mark.release

INSTANT = "20260101000000000"

ENOUGH = 100
"""Markers that are acked before the DataNode dies; six times as many are asked for."""

BOUND_S = 120.0
"""A commit looks for its outcome as long as that."""


@pytest.fixture
def peek(dfs) -> HdfsPeek:
    peek = HdfsPeek(dfs)
    write(peek.backend.url, first_id=1000)
    return peek


def assert_next_write_puts_it_in_order(peek: HdfsPeek, expected: list[int]) -> None:
    """The cluster, listed around the library, holds what was committed and nothing else."""
    write(peek.backend.url, first_id=2000)
    objects = peek.objects()
    table_is_at_rest(objects)
    assert committed_ids(objects) == sorted([*expected, *ids(2000)])


def restart_namenode(dfs: MiniDfs) -> None:
    with dfs.namenode_down():
        threading.Event().wait(2)


def restart_all(dfs: MiniDfs) -> None:
    dfs.crash()
    dfs.restart()


@pytest.mark.parametrize("restart", [restart_namenode, restart_all])
def test_a_job_whose_cluster_restarts_finishes_or_fails_in_bounded_time_and_leaves_nothing(peek, restart):
    began, committed = time.monotonic(), ids(1000)
    try:
        write(peek.backend.url, first_id=0, amid=partial(restart, peek.dfs))
        committed += ids(0)
    except* TallymarkError as errors:
        print(f"failed: {errors.exceptions}")
    assert time.monotonic() < began + BOUND_S
    assert_next_write_puts_it_in_order(peek, committed)


def test_a_job_whose_namenode_stays_away_fails_in_bounded_time_and_leaves_nothing(peek, tmp_path):
    with half_written(peek, tmp_path) as writer, peek.dfs.namenode_down():
        (tmp_path / "go on").touch()
        assert writer.wait(BOUND_S) == 1
    assert_next_write_puts_it_in_order(peek, ids(1000))


def test_a_killed_writers_open_files_go_with_the_next_write(peek, tmp_path):
    with half_written(peek, tmp_path) as writer:
        assert any(path.endswith(".tmp") for path in peek.objects())
        end_session(writer.pid)
    assert_next_write_puts_it_in_order(peek, ids(1000))


@contextmanager
def half_written(peek: HdfsPeek, folder: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """Another process that writes to the table, each of its tasks in mid file; killed at the end, if not by then."""
    writer = start_program("tests.system.hdfs.hdfs_writer_program", str(folder), peek.backend.url)
    try:
        await_that((folder / "half written").exists, "the writer's files are half written")
        yield writer
    finally:
        end_session(writer.pid)
        writer.wait()


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
            write(peek.backend.url, first_id=0)
    with peek.dfs.space_quota(peek.root, 1), pytest.raises(NotPermitted, match="make room"):
        write(peek.backend.url, first_id=0)
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
