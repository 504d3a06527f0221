import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

from tallymark.backends.contract import Backend
from tallymark.backends.errors import NotPermitted
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import Closed, FlushFailed, InvalidRequest, Sealed, ServiceUnavailable
from tallymark.engine.markers.direct_flag import flag_path
from tallymark.engine.rpc.client import JobClient, client_for
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.rpc.server import JobServer
from tallymark.engine.settings import ServiceSettings
from tallymark.engine.tasks.event_loops import TaskLoop
from tallymark.engine.tasks.marker_sources import TaskMarkers, task_markers
from tallymark.engine.tasks.task_writer import write_task
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.seal import seal_path
from tests.engine.rpc.serving import Functions, one_by_one
from tests.engine.tasks.scene import FLIGHTS, INSTANT, flights, local, memory, stored, ticket
from tests.support.faulty import FaultyBackend, refused
from tests.support.loops import on_both_loops

MARKERS = f".hoodie/.temp/{INSTANT}/"


@contextmanager
def serving_threads(*, silent: bool = False) -> Iterator[ServiceAddress]:
    """A real service, on a loop in another thread; a silent one welcomes its peers and answers none of them."""

    async def create(*_: object) -> None:
        if silent:
            await anyio.sleep_forever()

    server = JobServer(b"a secret of thirty-two bytes....", ServiceSettings(), Functions(one_by_one(create)))
    with start_blocking_portal("trio", name="service") as portal:
        portal.start_task(lambda *, task_status: server.run(task_status=task_status))
        yield server.address(INSTANT)
        portal.call(portal.stop, True)


@contextmanager
def markers_of(job: WriteTicket, storage: Backend) -> Iterator[TaskMarkers]:
    """For the time of the block, as a task has them."""
    with closing(TaskLoop(patience_s=job.settings.marker_wait_s)) as loop:
        yield task_markers(job, storage, loop)


def markers_in(storage):
    return {path for path in stored(storage) if path.startswith(MARKERS)}


def test_a_direct_marker_is_in_storage_when_its_ack_comes(storage):
    with markers_of(ticket(), storage) as markers:
        markers.source.request(["a=1/f.parquet", "a=2/g.parquet"]).result(10)
        expected = {f"{MARKERS}a=1/f.parquet.marker.CREATE", f"{MARKERS}a=2/g.parquet.marker.CREATE"}
        assert markers_in(storage) == expected


def test_the_event_loop_of_direct_markers_ends_with_the_task():
    before = set(threading.enumerate())
    with markers_of(ticket(), memory(has_staging=False)) as markers:
        markers.source.request(["f.parquet"])
    with pytest.raises(RuntimeError, match="in the task"), markers_of(ticket(), memory(has_staging=False)):
        raise RuntimeError("in the task")
    assert not [thread for thread in set(threading.enumerate()) - before if "portal" in thread.name.lower()]


def test_markers_under_way_land_before_the_task_is_over(storage):
    with markers_of(ticket(), storage) as markers:
        for number in range(50):
            markers.source.request([f"f{number}.parquet"])
    assert len(markers_in(storage)) == 50


def test_a_sealed_instant_refuses_direct_markers(storage):
    anyio.run(storage.put, seal_path(INSTANT), b"")
    with markers_of(ticket(), storage) as markers, pytest.raises(Sealed, match=INSTANT):
        markers.source.request(["f.parquet"]).result(10)


def test_a_refusal_of_storage_and_a_bad_path_come_through():
    storage = FaultyBackend(memory(has_staging=False), refused("put_new", error=NotPermitted("read-only")))
    storage.add(refused("put", error=NotPermitted("read-only")))
    with markers_of(ticket(), storage) as markers:
        with pytest.raises((NotPermitted, FlushFailed)):
            markers.source.request(["f.parquet"]).result(10)
        with pytest.raises(InvalidRequest):
            markers.source.request(["../f.parquet"]).result(10)


def service_job(address: ServiceAddress | None = None, **settings) -> WriteTicket:
    """A ticket of a job with a service; unless told where, one that no other test knows, and nobody listens there."""
    address = address or ServiceAddress("127.0.0.1", 1, os.urandom(32))
    return replace(ticket(FLIGHTS, "month", **settings), marker_kind="batched", service=address)


def test_without_fallback_the_client_of_this_process_serves_every_task_of_a_job():
    job = service_job(fallback=False)
    with markers_of(job, memory(has_staging=False)) as markers:
        assert isinstance(markers.source, JobClient)
        with markers_of(job, memory(has_staging=False)) as again:
            assert again.source is markers.source


def test_no_event_loop_runs_while_the_service_can_be_reached():
    before = set(threading.enumerate())
    with serving_threads() as address, markers_of(service_job(address), memory(has_staging=False)) as markers:
        markers.source.request(["month=1/f.parquet"]).result(10)
        assert not [thread for thread in set(threading.enumerate()) - before if "trio-portal" in thread.name]
        assert markers.direct.count == 0


@pytest.mark.parametrize("has_staging", [True, False])
def test_where_nobody_listens_a_task_marks_its_files_itself_and_says_so(has_staging, caplog):
    storage = memory(has_staging=has_staging)
    job = service_job(service_wait_s=0.2)
    report = write_task(job, [flights(range(30), months=3)], task=0, backend=storage)
    paths = {file.path for file in report.files}
    assert report.rows == 30
    assert report.direct_markers == len(paths) == 3
    assert set(stored(storage)) == paths | {f"{MARKERS}{path}.marker.CREATE" for path in paths} | {flag_path(INSTANT)}
    assert 0.1 < report.marker_wait_s < 15
    (told,) = [record for record in caplog.records if record.message.startswith("markers.fallback")]
    assert told.levelname == "WARNING"
    assert (
        f'instant={INSTANT} reason="ServiceUnavailable: no answer from the marker service at 127.0.0.1:1 within 0.2 s'
        in told.message
    )


@contextmanager
def listening() -> Iterator[ServiceAddress]:
    with socket.create_server(("127.0.0.1", 0)) as listener:  # the kernel accepts for it
        yield ServiceAddress("127.0.0.1", listener.getsockname()[1], os.urandom(32))


@pytest.mark.parametrize("server", [listening, partial(serving_threads, silent=True)], ids=["nothing", "a handshake"])
def test_a_server_that_answers_nothing_or_but_the_handshake_is_waited_for_no_longer(server, storage):
    with server() as address:
        report = write_task(service_job(address, service_wait_s=0.2), [flights([1])], task=0, backend=storage)
    assert (report.rows, report.direct_markers) == (1, 1)
    assert report.marker_wait_s < 15


def test_what_one_task_has_waited_for_the_next_does_not_wait_for_again(storage):
    job = service_job(service_wait_s=4)
    first, second = (write_task(job, [flights([1])], task=task, backend=storage) for task in range(2))
    assert first.marker_wait_s >= 3
    assert second.marker_wait_s < 3
    assert second.direct_markers == 1


def test_a_forked_process_knows_nothing_of_its_parents_outage():
    job = service_job(service_wait_s=0.1)
    write_task(job, [flights([1])], task=0, backend=memory(has_staging=False))
    assert job.service is not None

    def is_out() -> bool:
        assert job.service is not None
        return client_for(job.service, job.instant, wait_s=job.settings.service_patience_s).outage.is_on

    assert is_out()
    child = os.fork()
    if child == 0:
        os._exit(int(is_out()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_without_fallback_a_task_fails_where_the_service_cannot_be_reached(storage):
    job = service_job(fallback=False, marker_wait_s=0.2)
    with pytest.raises(ServiceUnavailable):
        write_task(job, [flights([1])], task=0, backend=storage)
    assert stored(storage) == {}


def test_the_tasks_of_one_process_put_the_flag_of_direct_markers_once():
    storage = FaultyBackend(memory(has_staging=False))
    job = service_job(service_wait_s=0.1)
    for task in range(3):
        write_task(job, [flights([1])], task=task, backend=storage)
    assert storage.paths("put_new").count(flag_path(INSTANT)) == 1
    assert storage.paths("put_new").index(flag_path(INSTANT)) == 0


def test_a_task_that_falls_back_after_the_seal_is_refused_and_leaves_but_the_flag_to_its_job(storage):
    anyio.run(storage.put, seal_path(INSTANT), b"")
    with pytest.raises(Sealed, match=INSTANT):
        write_task(service_job(service_wait_s=0.1), [flights([1])], task=0, backend=storage)
    assert set(stored(storage)) == {seal_path(INSTANT), flag_path(INSTANT)}


def test_a_fallback_that_comes_after_the_task_is_over_does_nothing(storage):
    with markers_of(service_job(service_wait_s=2), storage) as markers:
        ack = markers.source.request(["month=1/f.parquet"])
    with pytest.raises(Closed, match="is over"):
        ack.result(10)
    assert stored(storage) == {}


@pytest.mark.parametrize("has_staging", [True, False])
def test_write_task_marks_each_file_and_reports_it(has_staging):
    storage = memory(has_staging=has_staging)
    report = write_task(ticket(FLIGHTS, "month"), [flights(range(30), months=3)], task=0, backend=storage)
    assert (report.rows, report.direct_markers) == (30, 3)
    paths = {file.path for file in report.files}
    assert set(stored(storage)) == paths | {f"{MARKERS}{path}.marker.CREATE" for path in paths}


def test_write_task_opens_the_storage_that_the_ticket_names(tmp_path):
    storage = local(tmp_path)
    job = replace(ticket(FLIGHTS, "month"), url=storage.url)
    report = write_task(job, iter([flights(range(4), months=2)]), task=0)
    assert sorted(path for path in stored(storage) if not path.startswith(".hoodie")) == sorted(
        file.path for file in report.files
    )


@on_both_loops
async def test_a_task_on_an_event_loop_is_refused_at_once_and_told_where_to_go():
    with pytest.raises(InvalidRequest, match=r"this thread runs an event loop.*to_thread"):
        write_task(ticket(FLIGHTS), [flights(range(3))], task=0, backend=MemoryBackend())


FORKED_FROM_A_LOOP = """
import os, sys
import anyio
from tallymark import InvalidRequest, write_task
from tests.engine.tasks.scene import FLIGHTS, flights, memory, ticket

storage = memory(has_staging=True)

async def main():
    child = os.fork()
    if child == 0:
        try:
            print(write_task(ticket(FLIGHTS), [flights(range(3))], task=0, backend=storage).rows, flush=True)
        except InvalidRequest as error:
            print(error, flush=True)
        finally:
            os._exit(0)
    os.waitpid(child, 0)

anyio.run(main, backend=sys.argv[1])
"""


def test_a_child_forked_from_a_loop_of_trio_is_told_what_it_is():
    """A loop of asyncio stays behind in the parent; trio's goes on to be there, and no other can run in its thread."""
    program = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED_FROM_A_LOOP]
    said = subprocess.check_output([*program, "trio"], text=True, timeout=60)
    assert "runs an event loop, or was forked from one that does" in said
    assert "start workers by spawn or forkserver" in said
    assert subprocess.check_output([*program, "asyncio"], text=True, timeout=60) == "3\n"


@pytest.mark.parametrize(("name", "value"), [("task", -1), ("attempt", -1), ("stage", None)])
def test_a_number_that_no_file_name_takes_is_refused(name, value):
    numbers = {"task": 0, name: value}
    with pytest.raises(InvalidRequest, match=f"{name}={value}: give a whole number"):
        write_task(ticket(FLIGHTS), [flights(range(3))], **numbers)
