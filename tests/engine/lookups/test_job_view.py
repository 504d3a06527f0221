"""What tasks of a job look up: from its service, and without it."""

import os
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import pytest

from tallymark.backends.contract import Backend
from tallymark.engine.errors import CorruptObject, InvalidRequest, Sealed
from tallymark.engine.lookups.job_view import JobView, open_view
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.settings import MarkerSettings, ServiceSettings, TaskSettings, ViewSettings
from tallymark.engine.tasks.ticket import WriteTicket
from tests.engine.jobs.scene import Store, begin, committed, table
from tests.engine.rpc.serving import door, until
from tests.engine.rpc.test_client import closed_port
from tests.engine.tasks.scene import ticket as ticket_of_no_job
from tests.support.faulty import FaultyBackend
from tests.support.loops import on_both_loops

T = TypeVar("T")
PATIENCE_S = 20.0
QUICK: dict[str, Any] = {"log_jitter_s": 0.0, "log_readings": 1000, "wait_s": 0.3}
"""The readings of all tests are of one process."""


async def in_thread(act: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(act, abandon_on_cancel=True)


@asynccontextmanager
async def job_of(
    backend: Backend | None = None,
    *,
    pause_s: float = 3600.0,
    service: ServiceSettings | None = None,
    markers: MarkerSettings | None = None,
    **views: Any,
):
    """A job on a table with two months and another writer's later commit; what the table held before; its storage."""
    backend = backend or Store(has_staging=True).backend
    await committed(backend)
    await committed(backend, "append", {1: 4})
    where = table(backend, views=ViewSettings(**{**QUICK, **views}))
    tasks = TaskSettings(service_pause_s=pause_s)
    before = await where.snapshot()
    async with begin(where, markers=markers or MarkerSettings(), tasks=tasks, service=service) as job:
        await committed(backend, "overwrite", {1: 7})
        files = {month: tuple(f for f in before.files if f.partition == month) for month in ("month=1", "month=2")}
        yield job, files, backend


def moved(ticket: WriteTicket) -> WriteTicket:
    """Its service is where nobody listens."""
    assert ticket.service is not None
    return replace(ticket, service=ServiceAddress("127.0.0.1", closed_port(), ticket.service.job_key))


def looked_up(ticket: WriteTicket, backend: Backend, act: Callable[[JobView], T]) -> Callable[[], T]:
    def run() -> T:
        with open_view(ticket, backend=backend) as view:
            return act(view)

    return run


@on_both_loops
async def test_tasks_see_what_the_table_held_when_the_job_began_and_ask_storage_for_nothing():
    async with job_of(wait_s=PATIENCE_S) as (job, files, backend):
        storage = FaultyBackend(backend)

        def task(view: JobView) -> None:
            first, second = files["month=1"]
            assert view.position == job.ticket.base
            assert view.files("month=1") == (first, second)
            assert view.files_of(["month=2", "none"]) == {"month=2": files["month=2"], "none": ()}
            assert view.file("month=1", second.file_id) == second
            assert view.file("month=2", second.file_id) is None
            assert view.small_files("month=1", below=max(first.bytes, second.bytes) + 1) == (first, second)
            assert view.small_files("month=1", below=min(first.bytes, second.bytes)) == ()

        await in_thread(looked_up(job.ticket, storage, task))
        reading = await in_thread(looked_up(job.ticket, storage, JobView.statistics))
    assert storage.calls == []
    assert (reading.source, reading.by_service, reading.by_log, reading.fallbacks) == ("service", 2, 0, 0)
    assert (reading.partitions, reading.cached) == (7, 4)


@on_both_loops
async def test_a_partition_of_many_frames_and_many_partitions_arrive_whole():
    backend = Store(has_staging=True).backend
    months = dict.fromkeys(range(1, 13), 1)
    for _ in range(8):
        await committed(backend, "append", months)
    async with job_of(backend, service=ServiceSettings(frame_bytes=1024), wait_s=PATIENCE_S) as (job, files, backend):
        found = await in_thread(
            looked_up(job.ticket, backend, lambda view: view.files_of(f"month={month}" for month in months))
        )
    assert found["month=1"] == files["month=1"]
    assert [len(found[f"month={month}"]) for month in months] == [10, 9, *[8] * 10]


@on_both_loops
async def test_without_the_service_the_log_gives_the_same_answers_and_lists_nothing(caplog):
    caplog.set_level("INFO")
    async with job_of() as (job, files, backend):
        storage = FaultyBackend(backend)
        task = looked_up(moved(job.ticket), storage, lambda view: (view.files("month=1"), view.files("month=2")))
        for _ in range(3):
            assert await in_thread(task) == (files["month=1"], files["month=2"])
        reading = await in_thread(looked_up(moved(job.ticket), storage, JobView.statistics))
    assert [call.verb for call in storage.calls] == ["get"] * (1 + job.ticket.base)
    assert (reading.source, reading.by_service, reading.fallbacks, reading.log_readings) == ("log", 0, 1, 1)
    told = [record.message.partition(" ")[0] for record in caplog.records if record.message.startswith("view.")]
    assert told == ["view.fallback", "view.read"]


@pytest.mark.parametrize("made", [{"serve": False}, {"markers": MarkerSettings(kind="direct")}])
@on_both_loops
async def test_tasks_of_a_job_that_does_not_serve_its_view_or_has_direct_markers_read_the_log(made, caplog):
    async with job_of(**made) as (job, files, backend):
        assert await in_thread(looked_up(job.ticket, backend, lambda view: view.files("month=1"))) == files["month=1"]
        reading = await in_thread(looked_up(job.ticket, backend, JobView.statistics))
    assert (job.ticket.service is None) == ("markers" in made)
    assert (reading.source, reading.by_log, reading.fallbacks) == ("log", 1, 0)
    assert not [record for record in caplog.records if record.message.startswith("view.fallback")]


@on_both_loops
async def test_a_service_that_is_back_is_asked_again_and_what_was_read_of_the_log_is_given_back():
    async with job_of(pause_s=0.02, wait_s=1.0, cache_bytes=0) as (job, files, backend):
        real = job.ticket.service
        assert real is not None
        port = closed_port()
        away = replace(job.ticket, service=ServiceAddress(real.host, port, real.job_key))

        def task(view: JobView, is_done: Callable[[], bool]) -> None:
            ends_at = time.monotonic() + PATIENCE_S
            while not is_done() and time.monotonic() < ends_at:
                assert view.files("month=1") == files["month=1"]
            assert is_done()

        def is_by_log(view: JobView) -> bool:
            return view.statistics().by_log > 2

        view = await in_thread(lambda: open_view(away, backend=backend))
        await in_thread(partial(task, view, partial(is_by_log, view)))
        async with door(real, port=port):
            await in_thread(partial(task, view, lambda: view.statistics().by_service > 2))
            reading = view.statistics()
            view.close()
    assert (reading.source, reading.log_readings) == ("service", 1)
    await until(lambda: not [each for each in threading.enumerate() if each.name == f"tallymark view {job.instant}"])


@on_both_loops
async def test_where_neither_the_service_nor_the_log_is_the_job_s_nothing_is_answered():
    async with job_of() as (job, _, backend):
        other = replace(job.ticket, base_hash="0" * 64)
        with pytest.raises(CorruptObject, match="is not the log that the job began with"):
            await in_thread(looked_up(other, backend, lambda view: view.files("month=1")))


@on_both_loops
async def test_a_task_that_outlives_its_job_is_told_so():
    async with job_of(wait_s=PATIENCE_S) as (job, _, backend):
        view = await in_thread(partial(open_view, job.ticket, backend=backend))
        await in_thread(partial(view.files, "month=1"))
    with pytest.raises(Sealed, match="has ended"):
        await in_thread(partial(view.files, "month=2"))
    view.close()


@on_both_loops
async def test_calls_that_cannot_be_are_refused_and_told_what_to_do():
    with pytest.raises(InvalidRequest, match=r"open_view blocks.*to_thread"):
        open_view(ticket_of_no_job())
    with pytest.raises(InvalidRequest, match=r"belongs to no job.*WriteJob\.ticket"):
        await in_thread(lambda: open_view(ticket_of_no_job()))
    async with job_of() as (job, _, backend):
        with pytest.raises(InvalidRequest, match="give a list of partition paths"):
            await in_thread(looked_up(job.ticket, backend, lambda view: view.files_of("month=1")))
        odd: Any
        for odd in ("month=\udc80", 1, None):
            with pytest.raises(InvalidRequest, match="is not a partition path"):
                await in_thread(looked_up(job.ticket, backend, partial(JobView.files, partition=odd)))
        assert (await in_thread(looked_up(job.ticket, backend, JobView.statistics))).fallbacks == 0
        view = await in_thread(partial(open_view, job.ticket, backend=backend))
        with pytest.raises(InvalidRequest, match=r"a look-up blocks.*to_thread"):
            view.files("month=1")
        view.close()
        with pytest.raises(InvalidRequest, match="closed"):
            await in_thread(partial(view.files, "month=1"))


@on_both_loops
async def test_a_forked_child_opens_a_view_of_its_own():
    async with job_of() as (job, files, backend):
        ticket = moved(job.ticket)

        def task(view: JobView) -> int:
            assert view.files("month=1") == files["month=1"]
            child = os.fork()
            if child == 0:
                os._exit(_in_child(view, ticket, backend, files["month=2"]))
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, from Python 3.12 on
            assert await in_thread(looked_up(ticket, backend, task)) == 0


def _in_child(parents: JobView, ticket: WriteTicket, backend: Backend, files: object) -> int:
    """0 if all is well."""
    try:
        parents.files("month=1")
    except InvalidRequest as error:
        if "call open_view there" not in str(error):
            return 1
    else:
        return 2
    with open_view(ticket, backend=backend) as own:
        return 0 if own.files("month=2") == files and own.statistics().partitions == 1 else 3


@on_both_loops
async def test_storage_that_processes_do_not_share_is_needed_only_without_the_service():
    async with job_of(wait_s=PATIENCE_S) as (job, files, _):

        def task(ticket: WriteTicket) -> Any:
            with open_view(ticket) as view:
                return view.files("month=1")

        assert await in_thread(partial(task, job.ticket)) == files["month=1"]
    async with job_of() as (job, *_):
        with pytest.raises(InvalidRequest, match="give open_view that very backend"):
            await in_thread(partial(task, moved(job.ticket)))


@on_both_loops
async def test_many_threads_that_lose_the_service_at_once_read_the_log_once():
    async with job_of(log_jitter_s=0.05) as (job, files, backend):
        storage = FaultyBackend(backend)
        found: list[object] = []

        async def task(month: str) -> None:
            found.append(await in_thread(looked_up(moved(job.ticket), storage, lambda view: view.files(month))))

        async with anyio.create_task_group() as tasks:
            for number in range(16):
                tasks.start_soon(task, f"month={number % 2 + 1}")
    assert found.count(files["month=1"]) == found.count(files["month=2"]) == 8
    assert [call.verb for call in storage.calls] == ["get"] * (1 + job.ticket.base)
