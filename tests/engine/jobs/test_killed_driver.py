"""Real processes on a real disk: a driver dies by SIGKILL, and the next write leaves exactly what was committed."""

from pathlib import Path

import anyio
import pytest

from tallymark.backends.local import SCRATCH, LocalBackend
from tallymark.engine.table import open_table
from tests.backends.local_peek import LocalPeek
from tests.engine.jobs.scene import begin, flights, write_in_thread
from tests.support.process import run_until_killed
from tests.table_invariants import committed_files, data_files, decisions, table_is_at_rest


def objects(directory: Path) -> dict[str, bytes]:
    """All files of the table, read around the library; scratch files of a killed process aside, which nobody reads."""
    return {path: data for path, data in LocalPeek(directory).objects().items() if not path.startswith(SCRATCH)}


async def write(directory: Path, mode: str, months: dict[int, int]) -> None:
    async with begin(open_table(str(directory)), mode, partition_overwrite="dynamic", markers=None) as job:
        report = await write_in_thread(job, LocalBackend(directory), flights(months))
        await job.commit([report])


def rows(directory: Path) -> dict[str, int]:
    """Rows of each partition, as the library reads its own log."""

    async def count() -> dict[str, int]:
        found: dict[str, int] = {}
        for file in (await open_table(str(directory)).snapshot()).files:
            found[file.partition] = found.get(file.partition, 0) + file.rows
        return found

    return anyio.run(count)


BEFORE = {"month=1": 3, "month=2": 2}
AFTER_OVERWRITE = {"month=1": 3, "month=2": 30}


@pytest.mark.parametrize(
    ("mode", "verb", "pattern", "expected"),
    [
        ("overwrite", "-put_new", ".hoodie/.tallymark/log/*2", BEFORE),  # all written, nothing decided
        ("overwrite", "put_new", ".hoodie/.tallymark/log/*2", AFTER_OVERWRITE),  # decided, not projected
        ("overwrite", "-delete", "month=2/*", AFTER_OVERWRITE),  # projected, the replaced file not deleted
    ],
    ids=["before the entry", "after the entry", "before clean"],
)
def test_after_a_kill_the_next_write_leaves_exactly_the_committed_files(tmp_path, mode, verb, pattern, expected):
    directory = tmp_path / "table"
    anyio.run(write, directory, "append", {1: 3, 2: 2})
    kept = {path for path in data_files(objects(directory)) if "month=1/" in path}
    times = {path: (directory / path).stat().st_mtime_ns for path in kept}
    await_the_rest = run_until_killed("tests.engine.jobs.killed_driver", str(directory), mode, verb, pattern)
    await_the_rest()
    with pytest.raises(AssertionError):
        table_is_at_rest(objects(directory))
    anyio.run(write, directory, "append", {7: 1})  # at once: the dead process is seen to be gone
    table_is_at_rest(objects(directory))
    assert rows(directory) == {**expected, "month=7": 1}
    assert times == {path: (directory / path).stat().st_mtime_ns for path in kept}
    assert len(decisions(objects(directory))) == 3
    assert LocalPeek(directory).directories() == []


def test_a_killed_first_write_leaves_a_table_that_others_write_to(tmp_path):
    directory = tmp_path / "table"
    await_the_rest = run_until_killed(
        "tests.engine.jobs.killed_driver", str(directory), "append", "-put_new", "*/log/*"
    )
    await_the_rest()
    assert data_files(objects(directory)) != set()
    anyio.run(write, directory, "append", {7: 1})
    table_is_at_rest(objects(directory))
    assert len(committed_files(objects(directory))) == 1
