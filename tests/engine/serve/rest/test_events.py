"""Events of a table: each commit once, in order, also to a client that was away."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import httpx
import pytest

import tallymark
from tallymark.engine.documents.jobs import LiveFields
from tallymark.engine.rpc.handshake import job_name
from tallymark.engine.serve.rest.live_jobs import LiveJobs
from tallymark.engine.serve.rest.service import serve_page
from tallymark.engine.serve.roots import Roots
from tallymark.engine.serve.settings import JobServiceSettings, PageSettings
from tallymark.engine.serve.tokens import read_tokens, revoke_token
from tallymark.engine.settings import CommitSettings
from tests.engine.serve.rest.scene import SECRET, Tokens, path_of, write

pytestmark = pytest.mark.filterwarnings(
    "ignore:Async generator 'httpx:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

FIGURES: LiveFields = {"tasks": 1, "markers": 1, "acks_s": 1.0, "p50_s": 0.001, "p99_s": 0.001}


@asynccontextmanager
async def served(root: Path, *, jobs=None, live=None, ending=None, **settings) -> AsyncIterator[httpx.AsyncClient]:
    """A service on a port: within the process, a stream would not arrive before it ends."""
    page = PageSettings(port=0, **{"poll_s": 0.05, "written_poll_s": 0.05, **settings})

    async def serve(*, task_status) -> None:
        roots = Roots.of(str(root))
        await serve_page(roots, SECRET, page, jobs=jobs, live=live, ending=ending, task_status=task_status)

    async with anyio.create_task_group() as tasks:
        _, port = await tasks.start(serve)
        async with httpx.AsyncClient(base_url=f"http://localhost:{port}", timeout=60) as client:
            yield client
        tasks.cancel_scope.cancel()


async def next_events(lines: AsyncIterator[str], count: int) -> list[tuple[str, int, dict]]:
    found, fields = [], {}
    while len(found) < count:
        line = await anext(lines)
        if not line and "data" in fields:
            found.append((fields["event"], int(fields.get("id", -1)), json.loads(fields["data"])))
        name, _, value = line.partition(": ")
        fields = {**fields, name: value} if line else {}
    return found


async def test_a_client_gets_each_commit_from_now_on_and_what_it_missed_when_it_comes_back(tmp_path):
    folder = tmp_path / "flights"
    await write(folder, 1)
    async with served(tmp_path) as client:
        path = f"{path_of(folder)}/events"
        async with client.stream("GET", path) as answer:
            lines = answer.aiter_lines()
            assert (await anext(lines)).startswith(":")
            await write(folder, 2)
            ((kind, position, entry),) = await next_events(lines, 1)
            assert (kind, position, entry["position"], entry["operation"]) == ("commit", 2, 2, "append")
        await write(folder, 3)
        with suppress(tallymark.TallymarkError):
            await tallymark.open_table(str(folder)).clean()
        await write(folder, 4)
        async with client.stream("GET", path, headers={"Last-Event-ID": str(position)}) as answer:
            missed = await next_events(answer.aiter_lines(), 2)
        commits = (await client.get(f"{path_of(folder)}/commits", params={"after": position})).json()["entries"]
        assert [entry for _, _, entry in missed] == commits
        assert [id_ for _, id_, _ in missed] == [3, 4]


async def test_a_client_that_missed_archived_entries_is_shown_from_where_it_goes_on(tmp_path):
    folder = tmp_path / "flights"
    table = tallymark.open_table(str(folder), commit=CommitSettings(log_entry_count=2, timeline_commit_count=2))
    for month in (1, 2, 3, 4, 5):
        await write(folder, month)
        if month > 2:
            await table.checkpoint()
    async with served(tmp_path) as client, client.stream("GET", f"{path_of(folder)}/events?after=0") as answer:
        (kind, start, document), *rest = await next_events(answer.aiter_lines(), 3)
    assert (kind, document["position"]) == ("archived", start)
    assert [id_ for _, id_, _ in rest] == [start + 1, start + 2]


async def test_a_table_that_a_job_of_the_service_writes_is_looked_at_more_often(tmp_path):
    folder = tmp_path / "flights"
    await write(folder, 1)
    live = LiveJobs()
    live.update({job_name("20260101000000000", str(folder)): FIGURES})
    async with (
        served(tmp_path, live=live, poll_s=3600.0) as client,
        client.stream("GET", f"{path_of(folder)}/events") as answer,
    ):
        lines = answer.aiter_lines()
        await anext(lines)
        await write(folder, 2)
        ((_, position, _),) = await next_events(lines, 1)
        assert position == 2


@pytest.mark.parametrize("reason", ["revoked", "ending"])
async def test_a_stream_ends_with_its_token_and_with_the_service(tmp_path, reason):
    folder = tmp_path / "lake/flights"
    await write(folder, 1)
    tokens, ending = Tokens(tmp_path), anyio.Event()
    headers = tokens.add("read", "/*")
    async with (
        served(folder.parent, jobs=JobServiceSettings(tokens=str(tokens.path)), ending=ending) as client,
        client.stream("GET", f"{path_of(folder)}/events", headers=headers) as answer,
    ):
        lines = answer.aiter_lines()
        await anext(lines)
        if reason == "revoked":
            revoke_token(tokens.path, read_tokens(tokens.path)[0].id)
        else:
            ending.set()
            assert (await client.get("/readyz")).status_code == 503
        await write(folder, 2)
        with pytest.raises(StopAsyncIteration):
            await next_events(lines, 1)


async def test_no_more_clients_wait_than_the_limit(tmp_path):
    folder = tmp_path / "flights"
    await write(folder, 1)
    async with served(tmp_path, stream_count=1) as client:
        path = f"{path_of(folder)}/events"
        assert (await client.get(f"{path}?after=x")).status_code == 400
        async with client.stream("GET", path) as answer:
            lines = answer.aiter_lines()  # kept: it ends the stream when it is collected
            await anext(lines)
            assert (await client.get(path)).status_code == 429


async def test_a_table_that_is_created_again_is_followed_from_its_first_entry(tmp_path):
    folder = tmp_path / "flights"
    for month in (1, 2, 3):
        await write(folder, month)
    async with served(tmp_path) as client, client.stream("GET", f"{path_of(folder)}/events") as answer:
        lines = answer.aiter_lines()
        await anext(lines)
        folder.rename(tmp_path / "_old")
        await write(folder, 1)
        (kind, _, _), (_, position, entry) = await next_events(lines, 2)
        assert (kind, position, entry["position"]) == ("replaced", 1, 1)
    async with served(tmp_path) as client:
        headers = {"Last-Event-ID": "99"}
        async with client.stream("GET", f"{path_of(folder)}/events", headers=headers) as answer:
            assert [kind for kind, _, _ in await next_events(answer.aiter_lines(), 2)] == ["replaced", "commit"]


async def test_events_are_no_requests_and_a_client_that_asks_for_heads_takes_no_place(tmp_path):
    folder = tmp_path / "lake/flights"
    for month in range(1, 9):
        await write(folder, month)
    tokens = Tokens(tmp_path)
    headers = tokens.add("read", "/*")
    how = {"request_burst": 5, "requests_per_s": 0.001, "stream_count": 1}
    async with served(folder.parent, jobs=JobServiceSettings(tokens=str(tokens.path)), **how) as client:
        path = f"{path_of(folder)}/events?after=0"
        for _ in range(2):
            assert (await client.head(path, headers=headers)).status_code == 200
        async with client.stream("GET", path, headers=headers) as answer:
            found = await next_events(answer.aiter_lines(), 8)
        assert [position for _, position, _ in found] == [*range(1, 9)]


async def test_a_stream_ends_when_its_token_does_not_cover_the_table_any_more(tmp_path):
    folder = tmp_path / "lake/flights"
    await write(folder, 1)
    tokens = Tokens(tmp_path)
    headers = tokens.add("read", "/*")
    async with (
        served(folder.parent, jobs=JobServiceSettings(tokens=str(tokens.path))) as client,
        client.stream("GET", f"{path_of(folder)}/events", headers=headers) as answer,
    ):
        lines = answer.aiter_lines()
        await anext(lines)
        narrowed = tokens.path.read_text().replace('"/*"', '"/other/*"')
        tokens.path.write_text(narrowed)
        await write(folder, 2)
        with pytest.raises(StopAsyncIteration):
            await next_events(lines, 1)
