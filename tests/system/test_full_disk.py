"""A table on a disk that fills up or turns read-only: a clear error in time, and the table as it was."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from tallymark.backends import NotPermitted, TallymarkError
from tallymark.backends.local import LocalBackend
from tallymark.engine.settings import MarkerSettings
from tests.engine.jobs.scene import begin, flights, table, write_in_thread, write_rows
from tests.support.loops import on_both_loops
from tests.support.mounted import make_read_only, mounted
from tests.support.storage import data_files, files, objects
from tests.table_invariants import committed_files, table_is_at_rest

BOUND_S = 30.0
"""What a user waits at most for the error."""


@pytest.fixture
def disk(tmp_path: Path):
    with mounted(tmp_path / "disk", "size=3m") as folder:
        yield folder


def fill(disk: Path) -> Path:
    """Somebody else takes the rest of the disk."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                continue
    return ballast


def incompressible(rows: int) -> pa.Table:
    flown = [int.from_bytes(os.urandom(7)) for _ in range(rows)]
    return pa.table({"flight": flown, "month": [1] * rows}, schema=flights().schema)


async def write_some(backend: LocalBackend, *, before_commit: Callable[[], object] = lambda: None) -> set[str]:
    """The table's files after a write of five rows."""
    async with begin(table(backend)) as job:
        report = await write_rows(job, backend)
        before_commit()
        await job.commit([report])
    return committed_files(objects(Path(backend._root)))


@contextmanager
def refused(disk: Path, said: str, error: type[TallymarkError] = NotPermitted) -> Iterator[None]:
    """The block fails in time, and the error names the disk and what it is."""
    began = time.monotonic()
    with pytest.raises(error, match=rf"{disk} \(tmpfs.*{said}"):
        yield
    assert time.monotonic() - began < BOUND_S


def pass_lease(disk: Path) -> None:
    """All that is there is older than a lease."""
    for file in files(disk / "table"):
        os.utime(disk / "table" / file, (0, 0))


@on_both_loops
async def test_a_task_that_fills_the_disk_fails_by_name_and_the_table_is_as_it_was(disk):
    backend = LocalBackend(disk / "table")
    before = await write_some(backend)
    with refused(disk, "is full", TallymarkError):
        async with begin(table(backend), markers=MarkerSettings()) as job:
            await write_in_thread(job, backend, incompressible(1_000_000))
    assert data_files(disk / "table") == before
    table_is_at_rest(objects(disk / "table"))


@on_both_loops
async def test_a_disk_that_is_full_when_a_write_begins_refuses_it_and_the_next_write_finds_all_as_it_was(disk):
    backend = LocalBackend(disk / "table")
    before = await write_some(backend)
    ballast = fill(disk)
    with refused(disk, "is full"):
        await write_some(backend)
    assert committed_files(objects(disk / "table")) == before
    ballast.unlink()
    after = await write_some(backend)
    assert before < after == data_files(disk / "table")
    pass_lease(disk)
    await table(backend).clean()  # a beat of the write that never had an instant
    table_is_at_rest(objects(disk / "table"))


@on_both_loops
async def test_a_disk_that_fills_up_before_the_commit_leaves_the_table_as_it_was_and_the_next_write_clears_the_rest(
    disk,
):
    backend = LocalBackend(disk / "table")
    before = await write_some(backend)
    with refused(disk, "is full"):
        await write_some(backend, before_commit=lambda: fill(disk))
    assert committed_files(objects(disk / "table")) == before
    (disk / "ballast").unlink()
    pass_lease(disk)
    after = await write_some(backend)
    assert before < after == data_files(disk / "table")
    table_is_at_rest(objects(disk / "table"))


@on_both_loops
async def test_a_table_on_a_read_only_disk_is_read_and_a_write_is_refused_by_name(disk):
    backend = LocalBackend(disk / "table")
    before = await write_some(backend)
    make_read_only(disk)
    with refused(disk, "is read-only"):
        await write_some(backend)
    snapshot = await table(LocalBackend(disk / "table")).snapshot()
    assert {file.path for file in snapshot.files} == before == data_files(disk / "table")
