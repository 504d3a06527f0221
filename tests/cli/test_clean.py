import os
import socket
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from tallymark import open_table
from tests.cli.scene import data_files, run, run_json, write


@pytest.fixture
def replaced(tmp_path: Path) -> Path:
    """A table of two files that keeps for five hours a third one, which was replaced."""
    write(tmp_path, 1, 2, readers="table", retain_hours=5)
    write(tmp_path, 1, mode="overwrite", partition_overwrite="dynamic")
    return tmp_path


def test_clean_page_of_a_table_in_order_says_so(tmp_path):
    write(tmp_path, 1)
    assert run("clean", tmp_path).stdout.splitlines() == [
        "No instant to end: no dead writer has left anything.",
        "0 replaced files, 0 B, in 0 partitions.",
        "0 fences.",
    ]


def test_a_dry_run_shows_what_would_go_and_changes_nothing(replaced):
    before = data_files(replaced)
    assert run_json("clean", replaced, "--dry-run")["files"] == 0
    document = run_json("clean", replaced, "--dry-run", "--retain-hours", "0")
    assert (document["dry_run"], document["files"], document["horizon"]) == (True, 1, 2)
    assert (document["partitions"], document["looked_at"]) == (["month=1"], {"entries": 1, "partitions": 1})
    assert document["bytes"] == run_json("status", replaced)["retained_bytes"] > 0
    page = run("clean", replaced, "--dry-run", "--retain-hours", "0").stdout.splitlines()
    assert page[0] == "Dry run: nothing has been changed. A clean would do this:"
    assert page[2].startswith("1 replaced files, ")
    assert page[2].endswith(" in 1 partitions: month=1.")
    assert data_files(replaced) == before
    assert run_json("timeline", replaced)["entries"][-1]["position"] == 2


def test_replaced_files_are_counted_while_they_are_kept_and_the_clean_has_an_entry_with_its_horizon(replaced):
    status = run_json("status", replaced)
    assert (status["readers"], status["retain_hours"], status["retained_files"]) == ("table", 5.0, 1)
    assert "kept for 5 hours; now 1 files" in run("status", replaced).stdout
    assert len(data_files(replaced)) == 3
    document = run_json("clean", replaced, "--retain-hours", "0")
    assert (document["dry_run"], document["files"], document["horizon"]) == (False, 1, 2)
    assert len(data_files(replaced)) == 2
    assert run_json("status", replaced)["retained_files"] == 0
    *_, entry = run_json("timeline", replaced)["entries"]
    assert (entry["position"], entry["kind"], entry["operation"], entry["horizon"]) == (3, "clean", "clean", 2)
    assert (entry["files_added"], entry["files_removed"], entry["result"]) == (0, 0, None)
    assert run("timeline", replaced).stdout.splitlines()[-2].endswith("replaced up to position 2")


def test_a_clean_names_the_readers_that_keep_files(replaced):
    async def clean_beside_a_reader() -> None:
        async with open_table(replaced).reading(as_of=1):
            document = await to_thread.run_sync(lambda: run_json("clean", replaced, "--retain-hours", "0"))
            assert (document["files"], document["held_files"]) == (0, 1)
            assert document["readers"] == [{"position": 1, "host": socket.gethostname(), "pid": os.getpid()}]
            page = await to_thread.run_sync(lambda: run("clean", replaced, "--retain-hours", "0").stdout.splitlines())
            who = f"process {os.getpid()} on {socket.gethostname()} from position 1 on"
            assert page[2] == f"1 more stay for readers: {who}."

    anyio.run(clean_beside_a_reader, backend="trio")
    assert run_json("clean", replaced, "--retain-hours", "0")["files"] == 1


def test_hours_are_refused_where_nothing_is_kept_and_where_they_are_none(tmp_path):
    write(tmp_path, 1)
    result = run("clean", tmp_path, "--retain-hours", "1")
    assert result.exit_code == 1
    assert "a table with readers='directory' keeps no replaced files" in result.stderr
    assert run("clean", tmp_path, "--retain-hours", "-1").exit_code == 2
