"""The service as drivers and tasks meet it: keys by HTTP, markers and lookups over the wire, and jobs without it."""

import http.client
import json
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import anyio.to_thread
import pyarrow as pa
import pytest
from anyio.abc import TaskStatus

import tallymark
from tallymark.engine.background import background_tasks
from tallymark.engine.errors import InvalidRequest, NotAuthenticated, ServiceUnavailable
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.rpc.handshake import PROTOCOL, ServiceAddress
from tallymark.engine.rpc.shared_service import shared_address
from tallymark.engine.serve import job_routes
from tallymark.engine.serve.job_service import serve_jobs
from tallymark.engine.serve.roots import Roots
from tallymark.engine.serve.settings import JobServiceSettings
from tallymark.engine.settings import SharedServiceSettings, TaskSettings
from tallymark.engine.tasks.report import TaskReport
from tests.engine.rpc.test_client import closed_port
from tests.support.loops import on_both_loops

ROWS = pa.table({"month": [1, 1, 2], "flight": [1, 2, 3]})
SECRET = secrets.token_bytes(32)
INSTANT = "20261126190357315"

in_thread = anyio.to_thread.run_sync


@asynccontextmanager
async def serving(root: Path, **settings: Any) -> AsyncIterator[SharedServiceSettings]:
    settings = {"port": 0, "task_port": 0, **settings}
    ending = settings.pop("ending", None)
    async with background_tasks() as tasks:
        serve = partial(serve_jobs, Roots.of(str(root)), SECRET, JobServiceSettings(**settings), ending=ending)
        host, port = await tasks.start(serve)
        yield SharedServiceSettings(url=f"http://{host}:{port}")


async def write_task(job: WriteJob, task: int, **named: Any) -> TaskReport:
    ticket = named.pop("ticket", job.ticket)
    return await in_thread(partial(tallymark.write_task, ticket, ROWS.to_batches(), task=task, **named))


async def get(service: SharedServiceSettings, target: str, method: str = "GET") -> tuple[int, bytes]:
    def run() -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(service.url.removeprefix("http://"), timeout=30)
        try:
            connection.request(method, target)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    return await in_thread(run)


def left(root: Path) -> list[str]:
    return [str(path) for path in root.rglob("*") if path.is_file() and "/.temp/" in str(path)]


@on_both_loops
async def test_a_job_writes_and_looks_up_by_the_service_that_it_names(tmp_path):
    table = tallymark.open_table(tmp_path / "flights")
    async with serving(tmp_path) as service:
        for expected in (0, 2):
            async with table.write(schema=ROWS.schema, mode="append", partition_by=["month"], service=service) as job:
                assert job.ticket.service is not None
                assert job.ticket.service.job.endswith(f" {tmp_path}/flights")

                def look_up(job: WriteJob = job) -> tuple[int, int, int]:
                    with tallymark.open_view(job.ticket) as view:
                        found = len(view.files("month=1"))
                        return found, view.statistics().by_service, view.statistics().by_log

                reports = [await write_task(job, task) for task in range(2)]
                assert await in_thread(look_up) == (expected, 1, 0)
                result = await job.commit(reports)
            assert (result.marker_mode, result.markers, result.direct_markers, result.rows) == ("batched", 4, 0, 6)
    assert left(tmp_path) == []


@on_both_loops
async def test_a_table_on_this_machine_is_named_by_its_path(tmp_path):
    root = tmp_path / "run=3+1"
    async with serving(root) as service:
        table = tallymark.open_table(root / "my table ü%41")
        async with table.write(schema=ROWS.schema, mode="append", service=service) as job:
            result = await job.commit([await write_task(job, 0)])
    assert (result.markers, result.direct_markers) == (1, 0)


@on_both_loops
async def test_a_service_that_does_not_see_the_table_leaves_its_tasks_to_themselves(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    async with serving(tmp_path) as service:
        table = tallymark.open_table(tmp_path / "t")
        async with table.write(schema=ROWS.schema, mode="append", service=service) as job:
            seen = await shared_address(service, str(tmp_path / "elsewhere"), job.instant)
            result = await job.commit([await write_task(job, 0, ticket=_at(job, seen))])
    assert (result.markers, result.direct_markers) == (1, 1)


@on_both_loops
async def test_a_job_does_without_a_service_that_no_longer_serves_its_protocol(tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO", "tallymark.audit")
    monkeypatch.setattr(job_routes, "PROTOCOLS", (PROTOCOL + 1, PROTOCOL + 2))
    async with serving(tmp_path) as service:
        table = tallymark.open_table(tmp_path / "t")
        async with table.write(schema=ROWS.schema, mode="append", service=service) as job:
            result = await job.commit([await write_task(job, 0)])
    assert (result.rows, result.direct_markers) == (3, 1)
    assert f"serves protocols [{PROTOCOL + 1}, {PROTOCOL + 2}]" in caplog.text
    assert caplog.text.count("audit.answered") == 1, "its answer is final"


@on_both_loops
async def test_the_environment_names_the_service(tmp_path, monkeypatch):
    async with serving(tmp_path) as service:
        monkeypatch.setenv("TALLYMARK_SERVICE", service.url)
        async with tallymark.open_table(tmp_path / "t").write(schema=ROWS.schema, mode="append") as job:
            assert job.ticket.service is not None
            assert job.ticket.service.job
            await job.commit([await write_task(job, 0)])


async def _live(
    root: Path, life: anyio.CancelScope, task_port: int, *, task_status: TaskStatus[tuple[str, int]]
) -> None:
    settings = JobServiceSettings(port=0, task_port=task_port)
    with life:
        await serve_jobs(Roots.of(str(root)), SECRET, settings, task_status=task_status)


@on_both_loops
async def test_a_service_that_starts_again_and_one_beside_it_go_on_with_the_job(tmp_path):
    table, port = tallymark.open_table(tmp_path / "t"), closed_port()
    first, second, beside = (anyio.CancelScope() for _ in range(3))
    async with background_tasks() as tasks:
        host, driver_port = await tasks.start(_live, tmp_path, first, port)
        _, other_port = await tasks.start(_live, tmp_path, beside, 0)
        service, other = (SharedServiceSettings(url=f"http://{host}:{each}") for each in (driver_port, other_port))
        async with table.write(schema=ROWS.schema, mode="append", service=service) as job:
            reports = [await write_task(job, 0)]
            first.cancel()
            there = await shared_address(other, str(tmp_path / "t"), job.instant)
            reports.append(await write_task(job, 1, ticket=_at(job, there)))
            await tasks.start(_live, tmp_path, second, port)
            reports.append(await write_task(job, 2))
            result = await job.commit(reports)
    assert (result.rows, result.markers, result.direct_markers) == (9, 3, 0)
    assert left(tmp_path) == []


def _at(job: WriteJob, address: ServiceAddress) -> Any:
    return replace(job.ticket, service=address)


@on_both_loops
async def test_a_service_that_nobody_reaches_costs_a_job_its_batches_and_no_more(tmp_path, caplog):
    away = SharedServiceSettings(url=f"http://127.0.0.1:{closed_port()}", wait_s=0.5)
    table = tallymark.open_table(tmp_path / "t")
    async with table.write(schema=ROWS.schema, mode="append", service=away) as job:
        assert job.ticket.service is None
        result = await job.commit([await write_task(job, 0)])
    assert (result.rows, result.direct_markers) == (3, 1)
    assert "markers.fallback" in caplog.text
    with pytest.raises(ServiceUnavailable, match=f"no answer from the service at {away.url}"):
        async with table.write(mode="append", service=away, tasks=TaskSettings(fallback=False)):
            pass


@on_both_loops
async def test_a_key_opens_one_job_of_one_table(tmp_path):
    async with serving(tmp_path) as service:
        table = tallymark.open_table(tmp_path / "t")
        async with table.write(schema=ROWS.schema, mode="append", service=service) as job:
            address = job.ticket.service
            assert address is not None
            others = [
                await shared_address(service, str(tmp_path / "other"), job.instant),
                await shared_address(service, str(tmp_path / "t"), INSTANT),
            ]
            for other in others:
                assert other.job_key != address.job_key
                false = ServiceAddress(address.host, address.port, other.job_key, address.job)
                with pytest.raises(NotAuthenticated, match="the key does not open"):
                    await write_task(job, 0, ticket=_at(job, false))


@pytest.mark.parametrize(
    ("target", "status", "said"),
    [
        ("/v1/jobs?table={root}/t&instant=" + INSTANT, 200, '"job"'),
        ("/v1/jobs?table={root}side/t&instant=" + INSTANT, 403, "below none of the roots"),
        ("/v1/jobs?table={root}/../t&instant=" + INSTANT, 400, "is not an absolute path"),
        ("/v1/jobs?table=s3://bucket/t&instant=" + INSTANT, 403, "below none of the roots"),
        ("/v1/jobs?table={root}/t&instant=..", 400, "may hold letters"),
        ("/v1/jobs?table={root}/t", 400, "the parameter instant is missing"),
        ("/v1/jobs?table={root}/" + "t" * 800 + "&instant=" + INSTANT, 400, "too long for a service"),
        ("/v1/tables", 404, "there is no POST /v1/tables"),
    ],
)
@on_both_loops
async def test_what_a_driver_asks_for_is_answered_or_refused(tmp_path, target, status, said):
    root = tmp_path / "lake"
    root.mkdir()
    async with serving(root) as service:
        code, body = await get(service, target.format(root=quote(str(root))), "POST")
        assert (code, said in body.decode()) == (status, True)
        if status == 200:
            found = json.loads(body)
            assert sorted(found) == ["host", "job", "key", "port", "protocols", "release"]
            assert len(bytes.fromhex(found["key"])) == 32


@on_both_loops
async def test_a_link_out_of_the_roots_is_not_followed(tmp_path):
    lake, outside = tmp_path / "lake", tmp_path / "outside"
    lake.mkdir()
    outside.mkdir()
    (lake / "way_out").symlink_to(outside)
    async with serving(lake) as service:
        with pytest.raises(InvalidRequest, match=r"refuses: .*way_out is below none of the roots"):
            await shared_address(service, str(lake / "way_out"), INSTANT)


@on_both_loops
async def test_probes_see_a_service_that_is_about_to_end(tmp_path):
    ending = anyio.Event()
    async with serving(tmp_path, ending=ending) as service:
        assert [(await get(service, path))[0] for path in ("/livez", "/readyz")] == [200, 200]
        ending.set()
        assert [(await get(service, path))[0] for path in ("/livez", "/readyz")] == [200, 503]


@on_both_loops
async def test_clients_that_stay_connected_leave_room_for_drivers(tmp_path):
    async with serving(tmp_path, driver_count=2) as service:

        def stay() -> list[bytes]:
            answers = []
            for _ in range(6):
                with socket.create_connection(("127.0.0.1", int(service.url.rpartition(":")[2])), timeout=20) as raw:
                    raw.sendall(b"GET /livez HTTP/1.1\r\n\r\n")
                    answer = b""
                    while data := raw.recv(1000):  # until the service has closed it
                        answer += data
                    answers.append(answer)
            return answers

        assert all(b"200 OK" in answer and b"Connection: close" in answer for answer in await in_thread(stay))


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"host": "0.0.0.0"}, "host is an address of this machine alone"),
        ({"host": "0.0.0.0", "tls_cert": "a", "tls_key": "b"}, "unless tls_cert, tls_key and tokens are given"),
        ({"tls_cert": "a"}, "tls_key is given where tls_cert is"),
        ({"port": -1}, "port is between 0 and 65535"),
        ({"request_bytes": 10}, "request_bytes is a whole number"),
        ({"requests_per_s": 0}, "requests_per_s is a number above zero"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, rule):
    with pytest.raises(InvalidRequest, match=rule):
        JobServiceSettings(**settings)


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("", "url is https://HOST:PORT"),
        ("127.0.0.1:26755", "url is https://HOST:PORT"),
        ("https://host", "url is https://HOST:PORT"),
        ("ftp://host:1", "url is https://HOST:PORT"),
        ("https://user@host:1", "url is https://HOST:PORT"),
        ("https://h:1/x", "url is https://HOST:PORT"),
        ("https://h:99999", "has a port between 1 and 65535"),
        ("http://192.0.2.1:26755", "begins with https:// unless it is one of this machine"),
    ],
)
def test_a_service_is_named_by_scheme_host_and_port(url, rule):
    with pytest.raises(InvalidRequest, match=rule):
        SharedServiceSettings(url=url)


def test_a_token_with_a_line_end_is_refused_and_not_shown():
    with pytest.raises(InvalidRequest, match="setting token: it has spaces") as raised:
        SharedServiceSettings(url="https://h:1", token="tmk_secret\n")
    assert "tmk_secret" not in str(raised.value)


@on_both_loops
async def test_what_is_no_service_is_named(tmp_path):
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)

    async def answer(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            body = bodies.pop()
            await stream.send(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())

    key = json.dumps({"job": "a", "host": "b", "port": 1, "key": "ab" * 32})
    bodies = [key, "hello"]
    async with listener, background_tasks() as tasks:
        tasks.start_soon(listener.serve, answer)
        service = SharedServiceSettings(url=f"http://127.0.0.1:{port}", wait_s=30.0)
        with pytest.raises(ServiceUnavailable, match="is not 'tallymark serve'"):
            await shared_address(service, "/t", INSTANT)
        with pytest.raises(ServiceUnavailable, match="serves protocols None") as raised:
            await shared_address(service, "/t", INSTANT)
        assert "abab" not in str(raised.value)
