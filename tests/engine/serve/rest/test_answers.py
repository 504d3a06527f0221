"""Documents of the REST interface are those of the command line, whatever has happened to the table."""

from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallymark
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.settings import CommitSettings
from tests.cli.scene import SCHEMA, data_files, die_writing, run_json, written
from tests.engine.serve.rest.scene import client_of, path_of, write
from tests.support.examples import examples

STEPS = st.sampled_from(["append", "replace", "empty", "give up", "checkpoint", "clean"])


async def take(step: str, folder: Path, month: int) -> None:
    match step:
        case "append":
            await write(folder, month, month + 1)
        case "replace":
            await write(folder, month, mode="overwrite", partition_overwrite="dynamic")
        case "empty":
            async with tallymark.open_table(str(folder)).write(
                schema=SCHEMA, mode="overwrite", partition={"month": month}, partition_by=["month"]
            ) as job:
                await job.commit([])
        case "give up":
            async with written(folder, month):
                pass
        case _:
            maintain = tallymark.open_table(str(folder))
            await (maintain.checkpoint() if step == "checkpoint" else maintain.clean())


async def compare(client: httpx.AsyncClient, folder: Path) -> None:
    """Compare every document with what the command prints, and page by page with what it is a part of."""
    path = path_of(folder)

    async def same(part: str, *words: str, **query: Any) -> Any:
        answer = await client.get(f"{path}{part}", params=query)
        assert answer.status_code == 200, answer.text
        command, *options = words
        assert answer.json() == await anyio.to_thread.run_sync(lambda: run_json(command, folder, *options))
        return answer.json()

    status = await same("", "status")
    timeline = await same("/commits", "timeline")
    await same("/commits", "timeline", "--last", "2", limit=2)
    await same("/sizes", "files")
    await same("/sizes", "files", "--small-bytes", "10", small_bytes=10)
    for file in sorted(data_files(folder))[:2]:
        await same("/explain", "explain", file, file=file)
    plan = await client.post(f"{path}/plan", json={"mode": "overwrite", "partition": ["month=1"]})
    words = ("--mode", "overwrite", "--partition", "month=1")
    assert plan.json() == await anyio.to_thread.run_sync(lambda: run_json("plan", folder, *words))
    await compare_lists(client, folder, status, timeline)


async def compare_lists(client: httpx.AsyncClient, folder: Path, status: Any, timeline: Any) -> None:
    path, table = path_of(folder), tallymark.open_table(str(folder))
    snapshot = await table.snapshot()
    listed = [file async for file in pages(client, f"{path}/files", "files")]
    assert [file["path"] for file in listed] == [file.path for file in snapshot.files]
    assert sum(file["rows"] for file in listed) == status["rows"]
    partitions = [each async for each in pages(client, f"{path}/partitions", "partitions")]
    assert sum(each["files"] for each in partitions) == status["files"]
    assert len(partitions) == status["partitions"]
    head = status["position"]
    for entry in timeline["entries"]:
        after = entry["position"] - 1
        assert (await client.get(f"{path}/commits", params={"after": after, "limit": 1})).json()["entries"] == [entry]
    diff = (await client.get(f"{path}/diff", params={"start": 0, "end": head})).json()
    assert [file["path"] for file in diff["added"]] == [file.path for file in snapshot.files]
    assert diff["removed"] == []


async def pages(client: httpx.AsyncClient, path: str, name: str) -> Any:
    after = None
    while True:
        answer = await client.get(path, params={"limit": 2, **({} if after is None else {"after": after})})
        assert answer.status_code == 200, answer.text
        document = answer.json()
        assert 0 < len(document[name]) <= 2 or (after is None and not document[name])
        for each in document[name]:
            yield each
        after = document["next"]
        if after is None:
            return


@settings(max_examples=examples(5))
@given(steps=st.lists(st.tuples(STEPS, st.integers(1, 3)), min_size=1, max_size=6), looks=st.sets(st.integers(0, 5)))
def test_documents_after_any_history_are_those_of_the_command_line(tmp_path_factory, steps, looks):
    folder = tmp_path_factory.mktemp("lake") / "flights"

    async def play() -> None:
        await write(folder, 1)
        async with client_of(folder.parent) as client:
            for number, (step, month) in enumerate(steps):
                await take(step, folder, month)
                if number in looks:  # what is in memory then is of that moment
                    await compare(client, folder)
            await compare(client, folder)

    anyio.run(play, backend="trio")


async def test_an_open_instant_its_markers_and_what_its_end_would_remove(tmp_path):
    folder = tmp_path / "flights"
    await write(folder, 1)
    instant = await anyio.to_thread.run_sync(lambda: die_writing(folder, 2, 3))
    async with client_of(tmp_path) as client:
        path = path_of(folder)
        (job,) = (await client.get(f"{path}/jobs")).json()["jobs"]
        assert (job["instant"], job["writer"], job["markers"], job["live"]) == (instant, "dead", 2, None)
        markers = (await client.get(f"{path}/jobs/{instant}/markers")).json()
        assert markers.pop("next") is None
        assert markers == await anyio.to_thread.run_sync(lambda: run_json("markers", folder, instant))
        listed = [each async for each in pages(client, f"{path}/jobs/{instant}/markers", "markers")]
        assert listed == markers["markers"]
        loss = (await client.get(f"{path}/jobs/{instant}/loss")).json()
        assert (loss["files"], loss["partitions"]) == (
            2,
            [{"partition": "month=2", "files": 1}, {"partition": "month=3", "files": 1}],
        )
        (summary,) = (await client.get("/v1/tables")).json()["tables"]
        assert (summary["dead_writers"], summary["findings"][0]["command"]) == (
            1,
            f"tallymark rollback file://{folder}",
        )
        missing = await client.get(f"{path}/jobs/20260101000000000/loss")
        assert (missing.status_code, missing.json()["title"]) == (422, InvalidRequest.__name__)


async def test_a_table_that_is_created_again_is_read_again(tmp_path):
    folder = tmp_path / "flights"
    await write(folder, 1, 2)
    async with client_of(tmp_path) as client:
        before = await client.get(f"{path_of(folder)}/sizes")
        await anyio.to_thread.run_sync(lambda: folder.rename(tmp_path / "_old"))
        await write(folder, 1, 2)
        after = await client.get(f"{path_of(folder)}/sizes", headers={"If-None-Match": before.headers["etag"]})
        assert (after.status_code, after.json()["files"]) == (200, 2)
        assert after.headers["etag"] != before.headers["etag"]


async def test_a_tag_of_the_position_saves_the_answer_and_one_of_the_body_shows_a_dead_writer(tmp_path):
    folder = tmp_path / "flights"
    await write(folder, 1)
    async with client_of(tmp_path) as client:
        path = path_of(folder)
        tags = {part: (await client.get(f"{path}{part}")).headers["etag"] for part in ("", "/files", "/sizes")}
        for part, tag in tags.items():
            again = await client.get(f"{path}{part}", headers={"If-None-Match": f'"other", {tag}'})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        await anyio.to_thread.run_sync(lambda: die_writing(folder, 2))
        changed = {
            part: (await client.get(f"{path}{part}", headers={"If-None-Match": tag})).status_code
            for part, tag in tags.items()
        }
        assert changed == {"": 200, "/files": 304, "/sizes": 304}
        await write(folder, 3)
        assert (await client.get(f"{path}/files", headers={"If-None-Match": tags["/files"]})).status_code == 200


async def test_a_fleet_shows_each_table_and_why_one_cannot_be_read(tmp_path):
    for name in ("b", "a", "deep/er/c"):
        await write(tmp_path / name, 1)
    (tmp_path / "broken/.hoodie").mkdir(parents=True)
    (tmp_path / "broken/.hoodie/hoodie.properties").write_text("x=1")
    async with client_of(tmp_path) as client:
        tables = [each async for each in pages(client, "/v1/tables", "tables")]
        urls = [each["url"].removeprefix("file://") for each in tables]
        assert urls == [f"{tmp_path}/{name}" for name in ("a", "b", "broken", "deep/er/c")]
        (broken,) = [each for each in tables if each["error"] is not None]
        assert (broken["error"]["type"], broken["files"]) == ("CorruptObject", None)
        metrics = (await client.get("/metrics")).text
        assert f'tallymark_table_readable{{table="file://{tmp_path}/broken"}} 0.0' in metrics
        assert f'tallymark_table_files{{table="file://{tmp_path}/a"}} 1.0' in metrics


@pytest.mark.parametrize(
    ("part", "status", "detail"),
    [
        ("/diff?start=2&end=1", 422, "the earlier one first"),
        ("/diff?start=0&end=99", 422, "ends at 1"),
        ("/diff?start=0", 400, "end"),
        ("/files?limit=0", 400, "limit"),
        ("/files?position=7", 422, "position 7"),
        ("/files?partition=year%3D1", 422, "month"),
        ("/files?limt=1", 400, "limt"),
        ("/files?limit=1&limit=2", 400, "twice"),
        ("/files?position=null", 400, "position"),
        ("/commits?after=-1", 400, "after"),
        ("/explain?file=%2Fetc%2Fpasswd", 422, "/etc/passwd"),
        ("/nothing", 404, "Not Found"),
    ],
)
async def test_a_wrong_request_gets_a_problem_that_names_it(tmp_path, part, status, detail):
    await write(tmp_path / "flights", 1)
    async with client_of(tmp_path) as client:
        answer = await client.get(f"{path_of(tmp_path / 'flights')}{part}")
        problem = answer.json()
        assert (answer.status_code, problem["status"]) == (status, status)
        assert answer.headers["content-type"] == "application/problem+json"
        assert detail in problem["detail"]
        assert "\n" in (await client.get(problem["type"])).text


async def test_a_tag_changes_when_entries_are_archived(tmp_path):
    folder = tmp_path / "flights"
    for month in (1, 2, 3, 4, 5):
        await write(folder, month)
        await tallymark.open_table(str(folder)).checkpoint()
    path = f"{path_of(folder)}/commits?after=0"
    async with client_of(tmp_path) as client:
        before = await client.get(path)
        assert before.status_code == 200
    short = CommitSettings(log_entry_count=2, timeline_commit_count=2)
    await tallymark.open_table(str(folder), commit=short).checkpoint()
    async with client_of(tmp_path) as client:  # one that runs notices it within a minute
        after = await client.get(path, headers={"If-None-Match": before.headers["etag"]})
        assert (after.status_code, "archived" in after.text) == (422, True)
        beyond = await client.get(f"{path_of(folder)}/files?position=99", headers={"If-None-Match": "*"})
        assert beyond.status_code == 422
