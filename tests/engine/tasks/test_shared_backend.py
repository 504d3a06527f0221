"""Storage that tasks of one process share."""

import os
from dataclasses import replace
from pathlib import Path

import anyio
import pyarrow as pa
import pytest

import tallymark
from tallymark.backends.errors import NotFound
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.tasks.shared_backend import shared_backend
from tallymark.engine.tasks.ticket import WriteTicket
from tests.support.loops import on_both_loops

SCHEMA = pa.schema([("n", pa.int64())])


async def ticket_of(folder: Path) -> WriteTicket:
    async with tallymark.open_table(folder).write(schema=SCHEMA, mode="append") as job:
        return job.ticket


@on_both_loops
async def test_tasks_of_one_table_and_process_use_one_backend(tmp_path):
    ticket, other = await ticket_of(tmp_path / "t"), await ticket_of(tmp_path / "other")
    assert shared_backend(ticket, "write_task") is shared_backend(ticket, "open_view")
    assert shared_backend(ticket, "write_task") is not shared_backend(other, "write_task")
    patient = replace(ticket, options=replace(ticket.options, request_timeout_s=11.0))
    assert shared_backend(ticket, "write_task") is not shared_backend(patient, "write_task")


def test_a_fork_opens_its_own(tmp_path):
    ticket = anyio.run(ticket_of, tmp_path / "t")
    mine = shared_backend(ticket, "write_task")
    child = os.fork()
    if not child:
        os._exit(shared_backend(ticket, "write_task") is mine)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


@on_both_loops
async def test_a_folder_that_was_made_again_is_reached_by_the_same_one(tmp_path):
    ticket = await ticket_of(tmp_path / "t")
    backend = shared_backend(ticket, "write_task")
    (tmp_path / "t").rename(tmp_path / "away")
    with pytest.raises(NotFound):
        await backend.get("a")
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a").write_bytes(b"here")
    assert await backend.get("a") == b"here"


def test_memory_of_another_process_is_refused(tmp_path):
    ticket = replace(anyio.run(ticket_of, tmp_path / "t"), url="memory:t")
    with pytest.raises(InvalidRequest, match="lives in the memory of the process"):
        shared_backend(ticket, "write_task")
