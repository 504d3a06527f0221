"""The process of pages beside that of markers: neither takes the other with it, and it shows the jobs of the other."""

import json
import socket
import ssl
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import psutil
import pytest

import tallymark
from tallymark.engine.settings import SharedServiceSettings
from tests.cli.scene import SCHEMA, flights, write
from tests.engine.serve.rest.scene import path_of
from tests.engine.serve.test_secure_service import Authority
from tests.system.serve.pages import Served, serving_process

pytestmark = pytest.mark.slow


def page_of(served: Served) -> psutil.Process:
    (child,) = [each for each in psutil.Process(served.process.pid).children() if "--page-only" in each.cmdline()]
    return child


def get(url: str, context: ssl.SSLContext | None = None) -> Any:
    with urllib.request.urlopen(url, timeout=10, context=context) as answer:
        body = answer.read()
    return json.loads(body) if body.startswith(b"{") else body


def until(condition: Callable[[], object], timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        with suppress(OSError, AssertionError, ValueError, psutil.NoSuchProcess):
            if condition():
                return
        threading.Event().wait(0.05)
    pytest.fail(f"{condition} was not so within {timeout_s} s")


def test_pages_that_die_come_back_at_their_address_and_jobs_do_not_notice(tmp_path: Path) -> None:
    write(tmp_path / "lake/flights", 1)
    with serving_process(tmp_path / "lake", tmp_path) as served:
        page_of(served).kill()
        assert get(f"{served.jobs}/livez") == b"the service runs\n"
        until(lambda: get(f"{served.page}/v1/tables")["tables"][0]["files"] == 1)


def test_pages_do_not_outlive_the_service(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    with serving_process(tmp_path / "lake", tmp_path) as served:
        page = page_of(served)
        served.process.kill()
        until(lambda: not page.is_running() or page.status() == psutil.STATUS_ZOMBIE)


def test_a_client_that_does_not_read_keeps_no_pages_alive(tmp_path: Path) -> None:
    write(tmp_path / "lake/flights", 1)
    with serving_process(tmp_path / "lake", tmp_path) as served, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", int(served.page.rpartition(":")[2])))
        client.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
        page = page_of(served)
        served.process.kill()
        until(lambda: not page.is_running() or page.status() == psutil.STATUS_ZOMBIE)


def test_it_imports_nothing_of_the_folder_that_it_is_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "msgspec.py").write_text("raise SystemExit('of another')")
    monkeypatch.setenv("PYTHONPATH", str(Path(tallymark.__file__).parents[1]))
    monkeypatch.chdir(tmp_path)
    with serving_process(tmp_path / "lake", tmp_path, script="import sys; sys.path.remove(''); ") as served:
        assert get(f"{served.page}/livez") == b"the service runs\n"


def test_a_port_that_is_taken_is_an_error_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    with serving_process(tmp_path / "lake", tmp_path) as served:
        port = served.page.rpartition(":")[2]
        with pytest.raises(ValueError), serving_process(tmp_path / "lake", tmp_path, "--page-port", port):
            pass


def test_a_certificate_that_is_renewed_is_used_without_a_restart(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    authority = Authority(tmp_path)
    tls = ("--tls-cert", str(authority.cert), "--tls-key", str(authority.key))
    with serving_process(tmp_path / "lake", tmp_path, *tls) as served:
        for _ in range(2):
            trusted = ssl.create_default_context(cafile=str(authority.ca_file))
            until(partial(get, f"{served.page}/livez", trusted))
            authority.renew()
            with pytest.raises(OSError, match="certificate verify failed"):
                get(f"{served.page}/livez", trusted)


def test_a_job_of_the_service_is_shown_while_it_runs_and_its_commit_though_others_are_looked_at_once_an_hour(
    tmp_path: Path,
) -> None:
    anyio.run(show_a_job, tmp_path, backend="trio")


async def show_a_job(tmp_path: Path) -> None:
    folder = tmp_path / "lake/flights"
    await anyio.to_thread.run_sync(write, folder, 1)
    rows = flights(2).to_batches()
    config = tmp_path / "serve.toml"
    config.write_text("[page]\npoll_s = 3600.0\n")
    with serving_process(tmp_path / "lake", tmp_path, "--config", str(config)) as served:
        service = SharedServiceSettings(url=served.jobs)
        jobs, found, following = f"{served.page}{path_of(folder)}/jobs", [], threading.Event()

        def follow() -> None:
            with urllib.request.urlopen(f"{served.page}{path_of(folder)}/events", timeout=30) as events:
                for line in events:
                    following.set()
                    if line.startswith(b"id: "):
                        found.append(int(line[4:]))
                        return

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, follow)
            async with tallymark.open_table(str(folder)).write(schema=SCHEMA, mode="append", service=service) as job:
                writing = partial(tallymark.write_task, job.ticket, rows, task=0)
                report = await anyio.to_thread.run_sync(writing)
                await anyio.to_thread.run_sync(until, lambda: get(jobs)["jobs"][0]["live"])
                (shown,) = (await anyio.to_thread.run_sync(get, jobs))["jobs"]
                assert shown["instant"] == job.instant
                assert 0 < shown["live"]["p50_s"] <= shown["live"]["p99_s"]
                await anyio.to_thread.run_sync(following.wait)
                await job.commit([report])
        assert found == [2]
