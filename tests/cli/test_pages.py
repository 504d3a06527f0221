"""What commands print for people; their documents are those of ``test_golden``."""

import json
import os
import socket

import anyio

from tests.cli.scene import data_files, run, run_json, write, written


def test_a_checkpoint_is_described_with_its_parts_and_one_that_was_there_is_not_written_again(tmp_path):
    write(tmp_path, 1, 2)
    first = run("checkpoint", tmp_path).stdout.splitlines()
    assert (tmp_path / ".hoodie/.tallymark/checkpoint/latest").exists()
    assert first[0] == "Position 1: 2 files in 2 partitions."
    assert first[1].startswith("1 of 1 parts written, ")
    assert run("checkpoint", tmp_path).stdout.splitlines()[1] == "There was a checkpoint of it already."


def test_markers_of_a_dead_writer_name_every_data_file_that_it_left(abandoned):
    page = run("markers", abandoned.folder, abandoned.instant).stdout
    assert all(path in page for path in data_files(abandoned.folder) - abandoned.committed)
    assert f"2 markers of instant {abandoned.instant}." in page


def test_status_shows_the_facts_of_the_document(tmp_path):
    total = write(tmp_path, 1, 2).bytes + write(tmp_path, 2).bytes
    document, page = run_json("status", tmp_path), run("status", tmp_path).stdout
    assert (document["files"], document["partitions"], document["bytes"]) == (3, 2, total)
    for fact in (tmp_path.name, tmp_path.as_uri(), f"{total:,}", "int32", "not null", "No open instants"):
        assert fact in page


def test_status_shows_a_live_writer_by_host_and_process(tmp_path):
    async def status_while_writing() -> None:
        async with written(tmp_path, 1) as (job, _):
            page = await anyio.to_thread.run_sync(lambda: run("status", tmp_path).stdout)
            (writer,) = await anyio.to_thread.run_sync(lambda: run_json("status", tmp_path)["open_instants"])
            assert f"{socket.gethostname()} process {os.getpid()}" in page
            assert (writer["host"], writer["pid"]) == (socket.gethostname(), os.getpid())
            assert (writer["instant"], writer["writer"], writer["decision"]) == (job.instant, "alive", None)
            assert 0 <= writer["beat_age_s"] < 60

    anyio.run(status_while_writing, backend="trio")


def test_the_timeline_shows_an_entry_a_line_and_the_result_of_each_write(abandoned):
    run("rollback", abandoned.folder)
    part = write(abandoned.folder, 1, mode="overwrite", partition_overwrite="dynamic")
    whole = write(abandoned.folder, 2, mode="overwrite")
    _, _, *lines = run("timeline", abandoned.folder).stdout.splitlines()
    assert [line.split()[:3] for line in lines[:3]] == [
        ["2", abandoned.instant, "rollback"],
        ["3", part.instant, "overwrite"],
        ["4", whole.instant, "overwrite"],
    ]
    assert lines[2].split()[-1] == "all"
    _, ended, replaced, _ = run_json("timeline", abandoned.folder)["entries"]
    assert (ended["kind"], ended["scope"], ended["files_added"], ended["result"]) == ("rollback", None, 0, None)
    assert replaced["scope"] == {"all": False, "partitions": ["month=1"], "prefixes": []}
    assert (replaced["rows"], replaced["bytes"], replaced["files_removed"]) == (3, part.bytes, 1)
    of_the_call = {"position": 3, "is_rerun": False, "pending": None, "catalog": None}
    assert {**replaced["result"], "changes": None, **of_the_call} == json.loads(part.to_json())


def test_last_takes_the_newest_entries_and_no_more_than_there_are(tmp_path):
    write(tmp_path, 1)
    newest = write(tmp_path, 2)
    assert [entry["instant"] for entry in run_json("timeline", tmp_path, "--last", "1")["entries"]] == [newest.instant]
    assert len(run_json("timeline", tmp_path, "--last", "9")["entries"]) == 2


def test_the_timeline_of_a_table_without_commits_is_empty(tmp_path):
    async def timeline_during_the_first_write() -> None:
        async with written(tmp_path, 1):
            assert (await anyio.to_thread.run_sync(run_json, "timeline", tmp_path))["entries"] == []
            page = await anyio.to_thread.run_sync(run, "timeline", tmp_path)
            assert page.stdout == "No entries: nothing has been committed yet.\n"

    anyio.run(timeline_during_the_first_write, backend="trio")
