"""Actions: nothing is changed unless a request states it, and a request that is repeated is done once."""

import anyio
import anyio.to_thread
import pytest

from tallymark.engine.serve.rest.actions import ACTIONS, Repeats
from tallymark.engine.table import Table
from tests.cli.scene import data_files, die_writing, run_json
from tests.engine.serve.rest.scene import Tokens, client_of, path_of, write


@pytest.fixture
def tokens(tmp_path) -> Tokens:
    return Tokens(tmp_path)


async def abandoned(folder) -> str:
    await write(folder, 1)
    return await anyio.to_thread.run_sync(lambda: die_writing(folder, 2))


async def test_an_action_states_what_it_would_do_and_does_it_when_it_is_asked_to(tmp_path, tokens, caplog):
    folder = tmp_path / "lake/flights"
    instant = await abandoned(folder)
    headers, before = tokens.add("operate", "/*"), data_files(folder)
    caplog.set_level("INFO", "tallymark.audit")
    async with client_of(folder.parent, tokens=tokens) as client:
        for action in ACTIONS:
            answer = await client.post(f"{path_of(folder)}/actions/{action.name}", headers=headers, json={})
            assert answer.status_code == 200, answer.text
            assert answer.headers["cache-control"] == "no-store"
        planned = (await client.post(f"{path_of(folder)}/actions/rollback", headers=headers, json={})).json()
        assert (data_files(folder), caplog.text) == (before, "")
        assert planned["ended"][0]["instant"] == instant
        body = {"dry_run": False}
        (summary,) = (await client.get("/v1/tables", headers=headers)).json()["tables"]
        assert (await client.get(f"{path_of(folder)}/jobs", headers=headers)).json()["jobs"]
        done = (await client.post(f"{path_of(folder)}/actions/rollback", headers=headers, json=body)).json()
        assert done == {**planned, "dry_run": False}
        (after,) = (await client.get("/v1/tables", headers=headers)).json()["tables"]
        assert (summary["dead_writers"], after["dead_writers"]) == (1, 0), "it is read again at once"
        assert (await client.get(f"{path_of(folder)}/jobs", headers=headers)).json()["jobs"] == []
        assert len(data_files(folder)) == len(before) - 1
        assert f"operation=rollback client= token={headers['Authorization'][11:19]}" in caplog.text.replace(
            "127.0.0.1", ""
        )
        checkpoint = (await client.post(f"{path_of(folder)}/actions/checkpoint", headers=headers, json=body)).json()
        assert (
            checkpoint["position"] == (await anyio.to_thread.run_sync(lambda: run_json("status", folder)))["position"]
        )


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ({"dry_run": "no"}, {}, 400),
        ({"dry-run": False}, {}, 400),
        ({"instant": "x"}, {}, 400),
        ({"dry_run": False, "instant": "20260101000000000"}, {}, 422),
        ({}, {"Content-Type": "text/plain"}, 400),
        ({}, {"Idempotency-Key": "x" * 201}, 422),
        ({}, {"Idempotency-Key": "two words"}, 422),
        ({"instant": "1" * 70_000}, {}, 400),
    ],
)
@pytest.mark.filterwarnings("ignore:Async generator 'httpx:ResourceWarning")  # of a body that is not taken whole
async def test_a_wrong_action_changes_nothing(tmp_path, tokens, body, headers, status):
    folder = tmp_path / "lake/flights"
    await write(folder, 1)
    headers = {**tokens.add("operate", "/*"), **headers}
    async with client_of(folder.parent, tokens=tokens) as client:
        answer = await client.post(f"{path_of(folder)}/actions/rollback", headers=headers, json=body)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")


async def test_a_request_that_is_repeated_under_its_key_gets_the_first_answer(tmp_path, tokens):
    folder = tmp_path / "lake/flights"
    instant = await abandoned(folder)
    headers = {**tokens.add("operate", "/*"), "Idempotency-Key": "once"}
    async with client_of(folder.parent, tokens=tokens) as client:
        action, body = f"{path_of(folder)}/actions/rollback", {"dry_run": False}
        answers = [(await client.post(action, headers=headers, json=body)).json() for _ in range(2)]
        assert answers[0] == answers[1]
        assert [ended["instant"] for ended in answers[0]["ended"]] == [instant]
        assert (await client.post(action, headers=headers, json={})).status_code == 422
        other = await client.post(action, headers={**headers, "Idempotency-Key": "twice"}, json=body)
        assert other.json()["ended"] == []


async def test_an_action_ends_though_its_client_does_not_wait_and_one_that_fails_is_tried_again():
    runs, go = [], anyio.Event()

    async def act() -> str:
        runs.append(len(runs))
        await go.wait()
        if len(runs) == 1:
            raise ValueError("first")
        return "done"

    async with anyio.create_task_group() as tasks:
        repeats = Repeats(tasks)
        with anyio.move_on_after(0.05):
            await repeats.run("client", "key", "request", act)
        go.set()
        with pytest.raises(ValueError, match="first"):
            await repeats.run("client", "key", "request", act)
        assert [await repeats.run("client", "key", "request", act) for _ in range(2)] == ["done", "done"]
        assert runs == [0, 1]


async def test_the_audit_log_has_what_became_of_an_action_that_failed(tmp_path, tokens, monkeypatch, caplog):
    folder = tmp_path / "lake/flights"
    await write(folder, 1)

    async def failing(*_: object, **__: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(Table, "checkpoint", failing)
    headers = tokens.add("operate", "/*")
    caplog.set_level("INFO", "tallymark.audit")
    async with client_of(folder.parent, tokens=tokens) as client:
        answer = await client.post(f"{path_of(folder)}/actions/checkpoint", headers=headers, json={"dry_run": False})
        assert (answer.status_code, answer.json()["title"]) == (500, "Failure")
        assert "a fault" not in answer.text
    assert "outcome=RuntimeError" in caplog.text
