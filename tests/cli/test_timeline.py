import json

import anyio

from tests.cli.scene import run, run_json, write, written


def test_timeline_tells_each_entry_oldest_first(abandoned):
    folder = abandoned.folder
    run_json("rollback", folder)
    overwrite = write(folder, 1, mode="overwrite", partition_overwrite="dynamic")
    document = run_json("timeline", folder)
    first, *entries = document["entries"]
    assert document["url"] == folder.as_uri()
    assert (first["position"], first["kind"], first["operation"], first["scope"]) == (1, "commit", "append", None)
    assert (first["files_added"], first["files_removed"], first["rows"]) == (1, 0, 3)
    result = json.loads(overwrite.to_json())
    of_the_call = {name: result.pop(name) for name in ("position", "is_rerun", "pending", "catalog")}
    assert of_the_call == {"position": 3, "is_rerun": False, "pending": None, "catalog": None}
    assert entries == [
        {
            "position": 2,
            "instant": abandoned.instant,
            "kind": "rollback",
            "operation": "rollback",
            "scope": None,
            "files_added": 0,
            "files_removed": 0,
            "rows": 0,
            "bytes": 0,
            "txn": None,
            "result": None,
            "horizon": None,
        },
        {
            "position": 3,
            "instant": overwrite.instant,
            "kind": "commit",
            "operation": "overwrite",
            "scope": {"all": False, "partitions": ["month=1"], "prefixes": []},
            "files_added": 1,
            "files_removed": 1,
            "rows": 3,
            "bytes": overwrite.bytes,
            "txn": None,
            "result": result,
            "horizon": None,
        },
    ]


def test_timeline_page_has_a_line_an_entry(abandoned):
    run_json("rollback", abandoned.folder)
    whole = write(abandoned.folder, 2, mode="overwrite")
    _, _, second, third, *_ = run("timeline", abandoned.folder).stdout.splitlines()
    assert second.split()[:3] == ["2", abandoned.instant, "rollback"]
    assert third.split()[:3] == ["3", whole.instant, "overwrite"]
    assert third.split()[-1] == "all"


def test_last_takes_the_newest_entries_and_no_more_than_there_are(tmp_path):
    write(tmp_path, 1)
    newest = write(tmp_path, 2)
    assert [entry["instant"] for entry in run_json("timeline", tmp_path, "--last", "1")["entries"]] == [newest.instant]
    assert len(run_json("timeline", tmp_path, "--last", "9")["entries"]) == 2


def test_timeline_of_a_table_without_commits_says_so(tmp_path):
    async def ask_during_the_first_write() -> tuple[object, str]:
        async with written(tmp_path, 1):
            ask = anyio.to_thread.run_sync
            return await ask(run_json, "timeline", tmp_path), (await ask(run, "timeline", tmp_path)).stdout

    document, page = anyio.run(ask_during_the_first_write, backend="trio")
    assert document == {"url": tmp_path.as_uri(), "entries": []}
    assert page == "No entries: nothing has been committed yet.\n"
