import os
import socket

import anyio
from anyio import to_thread

from tallymark import open_table
from tests.cli.scene import data_files, run, run_json, write


def test_clean_ends_dead_writers_and_counts_what_it_swept(abandoned):
    document = run_json("clean", abandoned.folder)
    assert [ended["instant"] for ended in document["ended"]] == [abandoned.instant]
    assert document["fences_swept"] == 0
    assert data_files(abandoned.folder) == abandoned.committed


def test_clean_page_of_a_table_in_order_says_so(tmp_path):
    write(tmp_path, 1)
    assert run("clean", tmp_path).stdout.splitlines() == [
        "No instant to end: no dead writer has left anything.",
        "0 replaced files, 0 B, in 0 partitions.",
        "0 fences.",
    ]


def test_a_dry_run_shows_what_would_go_and_changes_nothing(tmp_path):
    first = write(tmp_path, 1, 2, readers="table")
    write(tmp_path, 1, mode="overwrite", partition_overwrite="dynamic")
    before = data_files(tmp_path)
    assert run_json("clean", tmp_path, "--dry-run")["files"] == 0
    document = run_json("clean", tmp_path, "--dry-run", "--retain-hours", "0")
    assert document == {
        "url": tmp_path.as_uri(),
        "dry_run": True,
        "ended": [],
        "files": 1,
        "bytes": document["bytes"],
        "partitions": ["month=1"],
        "horizon": 2,
        "looked_at": {"entries": 1, "partitions": 1},
        "held_files": 0,
        "readers": [],
        "fences_swept": 0,
    }
    assert 0 < document["bytes"] < first.bytes
    page = run("clean", tmp_path, "--dry-run", "--retain-hours", "0").stdout.splitlines()
    assert page[0] == "Dry run: nothing has been changed. A clean would do this:"
    assert page[2].startswith("1 replaced files, ")
    assert page[2].endswith(" in 1 partitions: month=1.")
    assert data_files(tmp_path) == before
    assert run_json("timeline", tmp_path)["entries"][-1]["position"] == 2


def test_what_was_kept_goes_when_its_hours_are_over(tmp_path):
    write(tmp_path, 1, 2, readers="table", retain_hours=5)
    write(tmp_path, 1, mode="overwrite", partition_overwrite="dynamic")
    status = run_json("status", tmp_path)
    assert (status["readers"], status["retain_hours"], status["retained_files"]) == ("table", 5.0, 1)
    assert "kept for 5 hours; now 1 files" in run("status", tmp_path).stdout
    assert len(data_files(tmp_path)) == 3
    document = run_json("clean", tmp_path, "--retain-hours", "0")
    assert (document["dry_run"], document["files"], document["horizon"]) == (False, 1, 2)
    assert len(data_files(tmp_path)) == 2
    assert run_json("status", tmp_path)["retained_files"] == 0


def test_who_holds_back_what_is_named(tmp_path):
    write(tmp_path, 1, 2, readers="table")
    write(tmp_path, 1, mode="overwrite", partition_overwrite="dynamic")

    async def clean_beside_a_reader() -> None:
        async with open_table(tmp_path).reading(as_of=1):
            document = await to_thread.run_sync(lambda: run_json("clean", tmp_path, "--retain-hours", "0"))
            assert (document["files"], document["held_files"]) == (0, 1)
            assert document["readers"] == [{"position": 1, "host": socket.gethostname(), "pid": os.getpid()}]
            page = await to_thread.run_sync(lambda: run("clean", tmp_path, "--retain-hours", "0").stdout.splitlines())
            who = f"process {os.getpid()} on {socket.gethostname()} from position 1 on"
            assert page[2] == f"1 more stay for readers: {who}."

    anyio.run(clean_beside_a_reader, backend="trio")
    assert run_json("clean", tmp_path, "--retain-hours", "0")["files"] == 1


def test_the_timeline_tells_a_clean_by_its_horizon(tmp_path):
    write(tmp_path, 1, readers="table", retain_hours=0)
    write(tmp_path, 1, mode="overwrite")
    *_, entry = run_json("timeline", tmp_path)["entries"]
    assert (entry["position"], entry["kind"], entry["operation"], entry["horizon"]) == (3, "clean", "clean", 2)
    assert (entry["files_added"], entry["files_removed"], entry["result"]) == (0, 0, None)
    assert run("timeline", tmp_path).stdout.splitlines()[-2].endswith("replaced up to position 2")


def test_hours_are_refused_where_nothing_is_kept_and_where_they_are_none(tmp_path):
    write(tmp_path, 1)
    result = run("clean", tmp_path, "--retain-hours", "1")
    assert result.exit_code == 1
    assert "a table with readers='directory' keeps no replaced files" in result.stderr
    assert run("clean", tmp_path, "--retain-hours", "-1").exit_code == 2
