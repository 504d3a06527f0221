"""Tables that one release wrote, used by another: those of earlier releases by this code, and the other way round.

What needs the code of the last release takes a source tree named by ``TALLYMARK_TEST_OLD_SOURCE``, or its commit in
this repository's history.
"""

import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pyarrow.parquet as pq
import pytest

import tallymark
from tallymark import TaskReport
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.timeline.properties import FORMAT, PROPERTIES, TableProperties
from tests.stores import table_program
from tests.stores.second_reader import read_table
from tests.support.parquet import ids_of
from tests.support.storage import exactly_the_committed_files, objects
from tests.system.scene import READERS
from tests.table_invariants import table_is_at_rest

ROOT = Path(__file__).parents[2]
TABLES = Path(__file__).parent / "tables"
RELEASES = sorted(folder.name for folder in TABLES.iterdir())
OLD_RELEASE = "0.1"
OLD_COMMIT = "9c0ecf0"
OLD_SOURCE = "TALLYMARK_TEST_OLD_SOURCE"
OLD_CODE = "new tables, old code"

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


@pytest.fixture(
    params=[*RELEASES, pytest.param("today", marks=pytest.mark.slow), pytest.param(OLD_CODE, marks=pytest.mark.release)]
)
def tables(request: pytest.FixtureRequest) -> str:
    """The release whose tables are used; or the last release's code, which uses tables of today."""
    return str(request.param)


@pytest.fixture
def run(tables: str, request: pytest.FixtureRequest) -> Run:
    return partial(run_old, request.getfixturevalue("old_source")) if tables == OLD_CODE else table_program.run


def run_old(source: Path, action: str, folder: str, **arguments: Any) -> Any:
    command = [sys.executable, table_program.__file__, action, folder, json.dumps(arguments)]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.fixture
def table(tables: str, request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """The folder of a table, by the table's name."""
    if tables in RELEASES:
        return partial(unpacked, tmp_path, tables)
    if tables == OLD_CODE and format_of(request.getfixturevalue("old_source")) < FORMAT:
        pytest.skip(f"release {OLD_RELEASE} refuses tables of format {FORMAT}")

    def made(name: str) -> str:
        table_program.make(name, tmp_path / name)
        table_program.make_older(tmp_path / name)
        return str(tmp_path / name)

    return made


def unpacked(into: Path, release: str, name: str) -> str:
    with tarfile.open(TABLES / release / f"{name}.tar.xz") as archive:
        archive.extractall(into, filter="data")
    return str(into / name)


def format_of(source: Path) -> int:
    """The greatest ``tallymark.format`` that a source tree knows."""
    text = (source / "tallymark/engine/timeline/properties.py").read_text()
    return int(re.findall(r"^FORMAT = (\d+)", text, re.MULTILINE)[0])


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


def test_rows_are_deleted_by_predicate(run: Run, tables: str, table) -> None:
    if tables == OLD_CODE:
        pytest.skip(f"release {OLD_RELEASE} does not delete rows")
    folder = table("committed")
    delete = partial(tallymark.open_table(folder).delete, "id BETWEEN 30 AND 42 OR part = 'b'")
    assert anyio.run(delete).position == 9
    after = {**{part: AT[8][part] for part in AT[8] if part != "b"}, "a": [0, 1, 2, 20], "d": [50]}
    assert run("read", folder) == after
    assert run("append", folder, rows={"d": [60]}) == committed_at(10)
    clean_and_at_rest(run, folder, {**after, "d": [50, 60]})


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


def test_an_archived_log_is_continued_and_its_txns_are_remembered(run: Run, tables: str, table) -> None:
    if tables == "0.1":
        pytest.skip("release 0.1 did not archive")
    folder = table("archived")
    assert not (Path(folder) / f".hoodie/.tallymark/log/{1:020d}").exists()
    rows = {"a": [*range(24)]}
    assert run("read", folder) == rows
    assert run("append", folder, rows={"a": [23]}, txn="daily:23") == {**committed_at(24), "is_rerun": True}
    assert run("append", folder, rows={"a": [24]}, txn="daily:24") == committed_at(25)
    with pytest.raises((InvalidRequest, AssertionError), match="archived"):
        run("append", folder, rows={"a": [0]}, txn="daily:0")
    run("fail", folder, rows={"e": [61]})
    assert run("clean", folder) == {"ended": [], "files": 0}
    assert run("read", folder) == {"a": [*range(25)]}
    assert read_table(Path(folder)).problems == []


def test_a_task_and_a_driver_take_the_ticket_and_the_reports_of_a_killed_job(run: Run, tables: str, table) -> None:
    if tables == "0.1":
        pytest.skip("release 0.1 had no encoding of tickets")
    folder = Path(table("job"))
    where = str(folder / "table")
    reports = [(folder / f"report-{task}").read_bytes().hex() for task in (0, 1)]
    assert [run("reported", where, report=report) for report in reports] == [
        {"task": 0, "rows": {"part=b": 2, "part=e": 2}, "fills": 1},
        {"task": 1, "rows": {"part=f": 1}, "fills": 0},
    ]
    report = run("work", where, ticket=(folder / "ticket").read_bytes().hex(), rows={"g": [64]}, task=2)
    assert run("reported", where, report=report) == {"task": 2, "rows": {"part=g": 1}, "fills": 0}
    assert run("rollback", where) == ["rolled back"]
    assert clean_and_at_rest(run, where, FIRST) == {"ended": [], "files": 0}


@pytest.mark.parametrize("worker", ["today", pytest.param(OLD_RELEASE, marks=pytest.mark.release)])
def test_workers_of_the_last_release_serve_a_driver_of_this_one(worker: str, request, tmp_path: Path) -> None:
    source = ROOT / "src" if worker == "today" else request.getfixturevalue("old_source")
    if worker == "0.1":
        pytest.skip("release 0.1 had no encoding of tickets")

    async def drive() -> None:
        async with table_program.job(str(tmp_path), mode="append") as job:
            run = partial(run_old, source, "work", str(tmp_path), ticket=job.ticket.encode().hex(), rows=FIRST)
            report = TaskReport.decode(bytes.fromhex(await anyio.to_thread.run_sync(run)))
            assert (report.rows, report.direct_markers) == (4, 0)
            await job.commit([report])

    anyio.run(drive, backend="trio")
    assert clean_and_at_rest(table_program.run, str(tmp_path), FIRST) == {"ended": [], "files": 0}


def test_both_releases_take_turns(tables: str, run: Run, tmp_path: Path) -> None:
    """Today's code and the code under test, in a table of the last release: without the latter the same one twice."""
    folder = unpacked(tmp_path, OLD_RELEASE if tables not in RELEASES else tables, "killed_before_commit")
    for number, code in enumerate((run, table_program.run, run, table_program.run)):
        code("append", folder, rows={"a": [60 + number]}, fill=True)
        code("overwrite", folder, rows={"b": [70 + number]})
    assert clean_and_at_rest(run, folder, {"a": [0, 1, 60, 61, 62, 63], "b": [73], "c": [3]})["ended"] == []


@pytest.mark.release
def test_the_last_release_refuses_a_newer_format_by_its_number(old_source: Path, tmp_path: Path) -> None:
    if format_of(old_source) == FORMAT:
        pytest.skip(f"release {OLD_RELEASE} writes tables of format {FORMAT}")
    table_program.make("committed", tmp_path)
    with pytest.raises(AssertionError, match=f"UnsupportedTable: the table has tallymark.format='{FORMAT}'"):
        run_old(old_source, "append", str(tmp_path), rows={"a": [60]})


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
