"""Two real services (SIGKILL) are killed again and again while jobs write by both: no acked marker is missing, and no
job fails that could go on.

A job finds a marker that was acked and lost by itself: it commits no file that its markers do not name.
"""

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import anyio
import anyio.to_thread
import pyarrow as pa
import pytest

import tallymark
from tallymark.backends.options import StorageOptions
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.settings import SharedServiceSettings, TaskSettings
from tests.engine.rpc.test_client import closed_port
from tests.support.services.s3_server import S3Server
from tests.support.storage import exactly_the_committed_files
from tests.table_invariants import committed_files, data_files

MONTHS = 6
TASKS = 8
ROWS = pa.table({"month": list(range(MONTHS)) * 50, "flight": range(MONTHS * 50)})
TASK = TaskSettings(open_file_count=2, service_wait_s=4.0, service_pause_s=0.2)
"""Files are finished early, so that a task needs many, one after the other."""

KILLS = [pytest.param(10, id="10 kills"), pytest.param(100, id="100 kills", marks=pytest.mark.release)]
"""A hundred in the release tier. On S3 fewer before that: a start of the service takes as long as a job there."""


class Service:
    """A service on fixed ports, which starts again whenever it was killed."""

    def __init__(self, root: str, secret: Path, options: list[str]) -> None:
        self.port, self.task_port = closed_port(), closed_port()
        program = [sys.executable, "-c", "from tallymark.cli import main; main()", "serve", "--root", root]
        ports = ["--port", str(self.port), "--task-port", str(self.task_port), "--hudi-port", "0", "--no-page"]
        self._command = [*program, *ports, "--secret", str(secret), *options]
        self._process: subprocess.Popen[str]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline().startswith("Jobs at"), "it does not start"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def settings(self) -> SharedServiceSettings:
        return SharedServiceSettings(url=f"http://127.0.0.1:{self.port}", wait_s=3.0)


@contextmanager
def killed_in_turn(services: list[Service], kills: int) -> Iterator[threading.Event]:
    """Kill one service after the other, at random moments. Yield what is set when that many were killed."""
    are_over, is_over, random = threading.Event(), threading.Event(), Random(kills)

    def run() -> None:
        for number in range(kills):
            if is_over.wait(random.uniform(0.05, 0.6)):
                return
            service = services[number % len(services)]
            service.kill()
            is_over.wait(random.choice((0.0, 0.0, 1.0)))
            service.start()
        are_over.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield are_over
    finally:
        is_over.set()
        thread.join()
        for service in services:
            service.kill()


async def write(url: str, services: list[Service], options: StorageOptions | None) -> WriteResult:
    """A job whose tasks use both services."""
    table = tallymark.open_table(url, options=options)
    async with table.write(
        schema=ROWS.schema, mode="append", partition_by=["month"], service=services[0].settings, tasks=TASK
    ) as job:
        address = job.ticket.service
        places = [address, address and replace(address, port=services[1].task_port)]

        def run(pool: ThreadPoolExecutor) -> list[Any]:
            def task(number: int) -> Any:
                service: ServiceAddress | None = places[number % 2]
                ticket = replace(job.ticket, service=service)
                return tallymark.write_task(ticket, ROWS.to_batches(max_chunksize=10), task=number)

            return list(pool.map(task, range(TASKS)))

        with ThreadPoolExecutor(4) as pool:
            return await job.commit(await anyio.to_thread.run_sync(run, pool))


def write_until(
    over: threading.Event, url: str, services: list[Service], options: StorageOptions | None = None
) -> list[WriteResult]:
    results = []
    while not over.is_set():
        results.append(anyio.run(write, url, services, options, backend="trio"))
        assert results[-1].rows == TASKS * ROWS.num_rows
    return results


def check_markers(results: list[WriteResult], kills: int) -> None:
    batched = sum(result.markers - result.direct_markers for result in results)
    direct = sum(result.direct_markers for result in results)
    print(f"{kills} kills, {len(results)} jobs, {batched} markers by the services, {direct} by tasks themselves")
    assert batched > direct, "the services were of use"


@pytest.mark.parametrize("kills", KILLS)
def test_no_acked_marker_is_missing_on_a_local_disk(tmp_path: Path, kills: int) -> None:
    lake = tmp_path / "lake"
    services = [Service(str(lake), tmp_path / "secret", []) for _ in range(2)]
    with killed_in_turn(services, kills) as over:
        results = write_until(over, str(lake / "t"), services)
    anyio.run(tallymark.open_table(lake / "t").clean, backend="trio")
    files = exactly_the_committed_files(lake / "t", scratch=True)
    assert len(files) == sum(result.files for result in results)
    check_markers(results, kills)


@pytest.mark.parametrize("kills", [pytest.param(4, id="4 kills"), KILLS[1]])
def test_no_acked_marker_is_missing_on_s3(s3: S3Server, bucket: str, tmp_path: Path, kills: int) -> None:
    pairs = {"endpoint": s3.options.endpoint, "region": s3.options.region, "path_style": "true"}
    options = [part for key, value in pairs.items() for part in ("--storage", f"{key}={value}")]
    services = [Service(f"s3://{bucket}", tmp_path / "secret", options) for _ in range(2)]
    with killed_in_turn(services, kills) as over:
        results = write_until(over, f"s3://{bucket}/t", services, s3.options)
    stored = {key.removeprefix("t/"): data for key, data in s3.objects(bucket).items()}
    assert len(committed_files(stored)) == sum(result.files for result in results)
    assert data_files(stored) >= committed_files(stored)
    check_markers(results, kills)


def test_a_job_begins_and_ends_while_no_service_runs(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    services = [Service(str(lake), tmp_path / "secret", []) for _ in range(2)]
    for service in services:
        service.kill()
    result = anyio.run(partial(write, str(lake / "t"), services, None), backend="trio")
    assert (result.rows, result.direct_markers) == (TASKS * ROWS.num_rows, result.markers)
    exactly_the_committed_files(lake / "t", scratch=True)
