"""Tables that one release wrote, used by another: the last release's by this code, and the other way round.

The second half needs the code of the last release: a source tree named by ``TALLYMARK_TEST_OLD_SOURCE``, or its commit
in this repository's history.
"""

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tallymark.engine.timeline.properties import PROPERTIES, TableProperties
from tests.stores import table_program
from tests.support.field_ids import ids_of
from tests.support.storage import exactly_the_committed_files, objects
from tests.system.scene import READERS
from tests.table_invariants import table_is_at_rest

ROOT = Path(__file__).parents[2]
TABLES = Path(__file__).parent / "tables"
OLD_COMMIT = "9c0ecf0"
OLD_SOURCE = "TALLYMARK_TEST_OLD_SOURCE"

Run = Callable[..., Any]
"""``run(action, folder, **arguments)``: an action of ``table_program``, by the code under test."""

AT = {
    1: {"a": [0, 1, 2], "b": [3, 4], "c": [5]},
    2: {"a": [0, 1, 2], "b": [10, 11], "c": [5]},
    3: {"a": [0, 1, 2, 20], "b": [10, 11], "c": [5], "x=y/ü": [21]},
    4: {"a": [0, 1, 2, 20, 30, 31], "b": [10, 11], "c": [5], "x=y/ü": [21]},
    5: {"a": [0, 1, 2, 20, 30, 31], "b": [10, 11], "x=y/ü": [21]},
    7: {"a": [0, 1, 2, 20, 30, 31], "b": [40], "d": [41, 42], "x=y/ü": [21]},
    8: {"a": [0, 1, 2, 20, 30, 31], "b": [40], "d": [41, 42, 50], "x=y/ü": [21]},
}
"""The rows of the committed table after each commit. Entry 6 is a clean; files replaced before it are deleted."""

FIRST = {"a": [0, 1], "b": [2], "c": [3]}
"""The rows of the other two tables before the killed jobs."""

OVERWRITTEN = {"a": [0, 1], "b": [80, 81], "c": [3], "e": [82]}
"""After the job that was killed once its log entry was put."""


@pytest.fixture(params=["old tables, new code", pytest.param("new tables, old code", marks=pytest.mark.release)])
def run(request: pytest.FixtureRequest) -> Run:
    if request.param == "old tables, new code":
        return table_program.run
    environment = {**os.environ, "PYTHONPATH": str(request.getfixturevalue("old_source"))}

    def run_old(action: str, folder: str, **arguments: Any) -> Any:
        command = [sys.executable, table_program.__file__, action, folder, json.dumps(arguments)]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    return run_old


@pytest.fixture
def table(run: Run, tmp_path: Path) -> Callable[[str], str]:
    """The folder of a table, by the table's name."""

    def unpacked(name: str) -> str:
        with tarfile.open(TABLES / f"{name}.tar.xz") as archive:
            archive.extractall(tmp_path, filter="data")
        return str(tmp_path / name)

    def made(name: str) -> str:
        table_program.make(name, tmp_path / name)
        make_older(tmp_path / name)
        return str(tmp_path / name)

    return unpacked if run is table_program.run else made


@pytest.fixture(scope="session")
def old_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``src`` folder of the last release."""
    if named := os.environ.get(OLD_SOURCE):
        return Path(named)
    folder = tmp_path_factory.mktemp("old")
    packed = folder / "old.tar"
    git = ["git", "-C", str(ROOT), "archive", "-o", str(packed), OLD_COMMIT, "src", "engine", "backends", "spark_glue"]
    if subprocess.run(git, capture_output=True, check=False).returncode:
        pytest.skip(f"no source of the last release: set {OLD_SOURCE}, or fetch the history to commit {OLD_COMMIT}")
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def make_older(folder: Path) -> None:
    """Shift a table to an hour ago, when its dead writers still sent heartbeats."""
    for path in folder.rglob("*"):
        times = path.stat()
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns - 3600 * 10**9))


def test_rows_are_read_at_each_retained_position(run: Run, table) -> None:
    folder = table("committed")
    assert run("read", folder) == AT[8]
    assert {position: run("read", folder, as_of=position) for position in (6, 7, 8)} == {6: AT[5], 7: AT[7], 8: AT[8]}
    assert run("timeline", folder) == [
        *("append", "overwrite", "append", "append", "overwrite", "clean", "overwrite", "append")
    ]
    table_is_at_rest(objects(Path(folder)))


def test_appends_fills_and_overwrites_continue_the_log(run: Run, table) -> None:
    folder = table("committed")
    assert run("append", folder, rows={"a": [60], "e": [61]}) == committed_at(9)
    assert run("append", folder, rows={"a": [62], "d": [63]}, fill=True) == committed_at(10)
    assert run("overwrite", folder, rows={"b": [70]}) == committed_at(11)
    after = {**AT[8], "a": [*AT[8]["a"], 60, 62], "b": [70], "d": [41, 42, 50, 63], "e": [61]}
    assert run("read", folder) == after
    assert {position: run("read", folder, as_of=position) for position in (6, 7, 8)} == {6: AT[5], 7: AT[7], 8: AT[8]}
    assert clean_and_at_rest(run, folder, after) == {"ended": [], "files": 4}


def test_a_txn_of_the_other_release_is_not_committed_again(run: Run, table) -> None:
    folder = table("committed")
    assert run("append", folder, rows=AT[1], txn="load:1") == {**committed_at(1), "is_rerun": True}
    assert run("append", folder, rows={"d": [50]}, txn="load:2") == {**committed_at(8), "is_rerun": True}
    assert run("append", folder, rows={"d": [51]}, txn="load:3") == committed_at(9)
    assert clean_and_at_rest(run, folder, {**AT[8], "d": [41, 42, 50, 51]}) == {"ended": [], "files": 1}


def test_a_write_that_fails_is_rolled_back(run: Run, table) -> None:
    folder = table("committed")
    run("fail", folder, rows={"a": [60], "e": [61]})
    assert run("timeline", folder)[8:] == ["rollback"]
    assert run("read", folder) == AT[8]
    assert clean_and_at_rest(run, folder, AT[8]) == {"ended": [], "files": 1}


@pytest.mark.parametrize("recovers", ["rollback", "clean", "append"])
def test_jobs_killed_before_their_commit_are_rolled_back(run: Run, table, recovers: str) -> None:
    folder = table("killed_before_commit")
    assert run("open_instants", folder) == 2
    assert run("read", folder) == FIRST
    assert recover(run, folder, recovers) in (["rolled back", "rolled back"], None)
    assert run("open_instants", folder) == 0
    rows = after_recovery(FIRST, recovers)
    assert run("read", folder) == rows
    assert run("timeline", folder) == ["append", "rollback", "rollback", *["append"] * (recovers == "append")]
    assert clean_and_at_rest(run, folder, rows) == {"ended": [], "files": 0}


@pytest.mark.parametrize("recovers", ["rollback", "clean", "append"])
def test_a_job_killed_after_its_log_entry_is_finished(run: Run, table, recovers: str) -> None:
    folder = table("killed_after_entry")
    assert run("open_instants", folder) == 1
    assert run("read", folder) == OVERWRITTEN
    with pytest.raises(AssertionError):
        table_is_at_rest(objects(Path(folder)))
    assert recover(run, folder, recovers) in (["was committed"], None)
    assert run("open_instants", folder) == 0
    rows = after_recovery(OVERWRITTEN, recovers)
    assert run("timeline", folder) == ["append", "overwrite", *["append"] * (recovers == "append")]
    assert clean_and_at_rest(run, folder, rows) == {"ended": [], "files": 0}


def test_both_releases_take_turns(run: Run, table) -> None:
    """Today's code and the code under test: the same one twice for tables of the last release."""
    folder = table("killed_before_commit")
    for number, code in enumerate((run, table_program.run, run, table_program.run)):
        code("append", folder, rows={"a": [60 + number]}, fill=True)
        code("overwrite", folder, rows={"b": [70 + number]})
    assert clean_and_at_rest(run, folder, {"a": [0, 1, 60, 61, 62, 63], "b": [73], "c": [3]})["ended"] == []


def recover(run: Run, folder: str, how: str) -> list[str] | None:
    """Return the outcomes of the instants that dead writers left; None of an append, which does not report them."""
    if how == "append":
        run("append", folder, rows={"a": [90]})
        return None
    outcomes: list[str] = run("rollback", folder) if how == "rollback" else run("clean", folder)["ended"]
    return outcomes


def after_recovery(rows: dict[str, list[int]], how: str) -> dict[str, list[int]]:
    return {**rows, "a": [*rows["a"], 90]} if how == "append" else rows


def committed_at(position: int) -> dict[str, object]:
    return {"position": position, "is_rerun": False, "pending": None}


def clean_and_at_rest(run: Run, folder: str, rows: dict[str, list[int]]) -> dict[str, Any]:
    """Clean without retention; the table is at rest, and every reader sees these rows. Returns what was cleaned."""
    retains = b"\ntallymark.readers=table\n" in (Path(folder) / ".hoodie/hoodie.properties").read_bytes()
    cleaned: dict[str, Any] = run("clean", folder, **({"retain_hours": 0} if retains else {}))
    table_is_at_rest(objects(Path(folder)))
    files = exactly_the_committed_files(Path(folder), scratch=True)
    ids = ids_of(TableProperties.decode((Path(folder) / PROPERTIES).read_bytes()).schema)
    assert all(ids_of(pq.read_schema(Path(folder) / file)) == ids for file in files), "a table of old has none"
    assert run("read", folder) == rows
    assert table_program.run("read", folder) == rows
    wanted = sorted((number, part, f"row {number}") for part, ids in rows.items() for number in ids)
    for reader, read in READERS.items():
        assert sorted(read(Path(folder))) == wanted, reader
    return cleaned
