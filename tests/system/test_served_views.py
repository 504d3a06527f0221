"""Tasks look up what partitions hold while the service is killed, stopped, slow, restarted or of another release.

Whatever befalls it the job finishes, each answer is that of the log at the position where the job began, no look-up
takes longer than its bound, and storage is asked for the log once, without a listing.
"""

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

from tallymark.backends.local import LocalBackend
from tallymark.engine.lookups.job_view import JobView, open_view
from tallymark.engine.rpc import handshake
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.settings import MarkerSettings, TaskSettings, ViewSettings
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile
from tests.engine.jobs.scene import begin, committed, table, write_rows
from tests.support.faulty import FaultyBackend
from tests.support.process import await_that
from tests.system.forked import Fork, Start
from tests.system.view_service import Serving, serve

MONTHS = dict.fromkeys(range(1, 13), 2)
WAIT_S = 0.5
ANSWERED_S = 5.0
"""Where the service has to answer: a busy machine's time for it."""
PAUSE_S = 0.2
READING_S = 9.5
"""Real seconds for one look-up, beyond what the service has: the reading of a short log, and a busy machine."""
THREADS = 4


@dataclass
class Scene:
    """A job, and the service that its tasks ask for what partitions hold."""

    url: str
    ticket: WriteTicket
    truth: dict[str, tuple[DataFile, ...]]
    storage: FaultyBackend
    start: Start
    service: Fork
    wait_s: float
    durations: list[float] = field(default_factory=list)

    def look_up(self, view: JobView, until: Callable[[], bool]) -> None:
        """Every partition again and again, from several threads, until it is enough; each answer is checked."""

        def task(_: int) -> None:
            is_over = False
            while not is_over:
                is_over = until()
                for partition, files in self.truth.items():
                    began = time.monotonic()
                    assert view.files(partition) == files, partition
                    self.durations.append(time.monotonic() - began)

        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(task, range(THREADS)))

    def serve_again(self, *, protocol: int = handshake.PROTOCOL) -> None:
        """A new life of the service, at the address that tasks know."""
        assert self.ticket.service is not None
        port = self.ticket.service.port
        plan = Serving(url=self.url, instant=self.ticket.instant, port=port, protocol=protocol)
        self.service = self.start(serve, plan)
        self.service.hear(ServiceAddress)


@contextmanager
def job(place: Path, start: Start, *, delay_s: float = 0.0, wait_s: float = WAIT_S) -> Iterator[Scene]:
    """A job on a table of twelve months, whose log goes on; it commits when its block ends, and is checked."""
    backend = LocalBackend(place)
    for mode in ("append", "append", "overwrite", "append"):
        anyio.run(committed, backend, mode, MONTHS)
    views = ViewSettings(wait_s=wait_s, cache_bytes=0, log_jitter_s=0.05, log_readings=1000)
    tasks = TaskSettings(service_pause_s=PAUSE_S)
    with start_blocking_portal("trio") as portal:
        writing = begin(table(backend, views=views), markers=MarkerSettings(), tasks=tasks)
        with portal.wrap_async_context_manager(writing) as begun:
            before = portal.call(table(backend).snapshot)
            anyio.run(committed, backend, "overwrite", {1: 1})
            service = start(serve, Serving(url=backend.url, instant=begun.instant, delay_s=delay_s))
            yield Scene(
                url=backend.url,
                ticket=replace(begun.ticket, service=service.hear(ServiceAddress)),
                truth={
                    f"month={month}": tuple(file for file in before.files if file.partition == f"month={month}")
                    for month in MONTHS
                },
                storage=FaultyBackend(backend),
                start=start,
                service=service,
                wait_s=wait_s,
            )
            report = portal.call(write_rows, begun, backend)
            result = portal.call(begun.commit, [report])
        assert result.position == begun.ticket.base + 2


@contextmanager
def viewed(folder: Path, start: Start, **how: float) -> Iterator[tuple[Scene, JobView]]:
    with job(folder / "table", start, **how) as scene, open_view(scene.ticket, backend=scene.storage) as view:
        yield scene, view


def assert_in_bounds(scene: Scene, *, readings: int) -> None:
    """A reading of the log is a look for a checkpoint, and one for each entry."""
    assert max(scene.durations) < scene.wait_s + READING_S
    assert [call.verb for call in scene.storage.calls] == ["get"] * (1 + scene.ticket.base) * readings


def after(scene: Scene, count: int) -> Callable[[], bool]:
    """Whether so many more look-ups have been answered."""
    wanted = len(scene.durations) + count
    return lambda: len(scene.durations) >= wanted


def test_while_the_service_answers_storage_is_not_asked(tmp_path: Path, start: Start) -> None:
    with viewed(tmp_path, start, wait_s=ANSWERED_S) as (scene, view):
        scene.look_up(view, after(scene, 200))
        assert view.statistics().by_log == 0
    assert_in_bounds(scene, readings=0)


@pytest.mark.parametrize("protocol", [None, handshake.PROTOCOL + 1])
def test_the_service_is_killed_and_none_or_one_of_another_release_takes_its_place(
    tmp_path: Path, start: Start, caplog: pytest.LogCaptureFixture, protocol: int | None
) -> None:
    with viewed(tmp_path, start, wait_s=ANSWERED_S) as (scene, view):
        scene.look_up(view, after(scene, 100))
        scene.service.kill()
        if protocol is not None:
            scene.serve_again(protocol=protocol)
        scene.look_up(view, after(scene, 200))
        reading = view.statistics()
    assert (reading.source, reading.fallbacks, reading.log_readings) == ("log", 1, 1)
    assert (f"(protocol {protocol})" in caplog.text) == (protocol is not None)
    assert_in_bounds(scene, readings=1)


def test_the_service_stands_still_and_goes_on(tmp_path: Path, start: Start) -> None:
    with viewed(tmp_path, start) as (scene, view):
        scene.look_up(view, after(scene, 100))
        scene.service.signal(signal.SIGSTOP)
        scene.service.await_stopped()
        scene.look_up(view, after(scene, 200))
        assert view.statistics().source == "log"
        scene.service.signal(signal.SIGCONT)
        scene.look_up(view, lambda: view.statistics().source == "service")
        scene.look_up(view, after(scene, 100))
    assert view.statistics().log_readings >= 1
    assert_in_bounds(scene, readings=view.statistics().log_readings)


def test_the_service_is_slow(tmp_path: Path, start: Start) -> None:
    with viewed(tmp_path, start, delay_s=60.0) as (scene, view):
        scene.look_up(view, after(scene, 200))
        reading = view.statistics()
    assert (reading.source, reading.by_service, reading.log_readings) == ("log", 0, 1)
    assert_in_bounds(scene, readings=1)


def test_the_service_is_killed_and_another_life_takes_its_place(tmp_path: Path, start: Start) -> None:
    with viewed(tmp_path, start) as (scene, view):
        scene.look_up(view, after(scene, 100))
        scene.service.kill()
        scene.look_up(view, lambda: view.statistics().source == "log")
        scene.serve_again()
        await_that(lambda: _is_asked(scene, view), "the service is asked again")
        scene.look_up(view, after(scene, 100))
    assert_in_bounds(scene, readings=view.statistics().log_readings)


def _is_asked(scene: Scene, view: JobView) -> bool:
    scene.look_up(view, lambda: True)
    return view.statistics().source == "service"
