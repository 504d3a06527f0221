import os
import socket
from typing import Any

import anyio

from tests.cli.scene import run, run_json, write, written


def test_status_of_a_table_at_rest_gives_every_documented_fact(tmp_path):
    first, second = write(tmp_path, 1, 2), write(tmp_path, 2)
    assert run_json("status", tmp_path) == {
        "url": tmp_path.as_uri(),
        "name": tmp_path.name,
        "readers": "directory",
        "retain_hours": None,
        "retained_files": 0,
        "retained_bytes": 0,
        "partition_by": ["month"],
        "columns": [
            {"name": "month", "type": "int32", "nullable": False},
            {"name": "flight", "type": "int64", "nullable": True},
        ],
        "position": 2,
        "files": 3,
        "rows": 9,
        "bytes": first.bytes + second.bytes,
        "partitions": 2,
        "open_instants": [],
    }


def test_status_page_says_what_the_document_says(tmp_path):
    result = write(tmp_path, 1, 2)
    page = run("status", tmp_path).stdout
    for fact in (tmp_path.name, tmp_path.as_uri(), f"{result.bytes:,}", "int32", "not null", "No open instants"):
        assert fact in page


def test_status_shows_a_live_writer_by_host_and_process(tmp_path):
    async def ask_while_writing() -> tuple[list[dict[str, Any]], str, str]:
        async with written(tmp_path, 1) as (job, _):
            ask = anyio.to_thread.run_sync
            page = await ask(lambda: run("status", tmp_path).stdout)
            return await ask(lambda: run_json("status", tmp_path)["open_instants"]), page, job.instant

    found, page, instant = anyio.run(ask_while_writing, backend="trio")
    (writer,) = found
    assert 0 <= writer.pop("beat_age_s") < 60
    assert writer == {
        "instant": instant,
        "operation": "append",
        "marker_kind": "batched",
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "writer": "alive",
        "decision": None,
    }
    assert f"{socket.gethostname()} process {os.getpid()}" in page


def test_status_shows_a_killed_writer_as_dead_and_changes_nothing(abandoned):
    before = sorted(abandoned.folder.rglob("*"))
    (writer,) = run_json("status", abandoned.folder)["open_instants"]
    assert (writer["instant"], writer["writer"], writer["decision"]) == (abandoned.instant, "dead", None)
    assert sorted(abandoned.folder.rglob("*")) == before
