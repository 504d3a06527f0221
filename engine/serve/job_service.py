"""The service that jobs name whose tasks cannot reach their driver: one listener for drivers, one for tasks."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
from anyio.abc import TaskStatus

from tallymark.engine.background import background_tasks
from tallymark.engine.documents.jobs import LiveFields
from tallymark.engine.rpc.server import JobServer, bound_address, closing, listen
from tallymark.engine.rpc.tls import ServerTls
from tallymark.engine.serve.http_service import serve_http
from tallymark.engine.serve.job_figures import JobFigures
from tallymark.engine.serve.job_routes import JobRoutes
from tallymark.engine.serve.job_tables import JobTables
from tallymark.engine.serve.memory import DEFAULT_BYTES, Memory
from tallymark.engine.serve.rates import Rates
from tallymark.engine.serve.roots import Roots
from tallymark.engine.serve.settings import JobServiceSettings
from tallymark.engine.serve.tokens import TokenFile
from tallymark.engine.settings import MarkerSettings, ServiceSettings, ViewSettings

REPORT_SHARE = 100.0
"""Least time between two reports, in times of what one takes: acks are delayed by a hundredth at most."""

REPORT_S = 0.5
"""Time between two reports of figures: with ``PageSettings.written_poll_s`` it bounds how late a commit is shown."""


@dataclass(frozen=True, slots=True)
class _DriverLimits:
    """Limits of the listener for drivers."""

    settings: JobServiceSettings
    send_timeout_s: float = 30.0

    @property
    def connection_count(self) -> int:
        return self.settings.driver_count

    @property
    def handshake_count(self) -> int:
        return self.settings.driver_count

    @property
    def handshake_timeout_s(self) -> float:
        return self.settings.request_timeout_s

    @property
    def request_bytes(self) -> int:
        return self.settings.request_bytes


async def serve_jobs(
    roots: Roots,
    secret: bytes,
    settings: JobServiceSettings | None = None,
    *,
    markers: MarkerSettings | None = None,
    views: ViewSettings | None = None,
    memory: Memory | None = None,
    ending: anyio.Event | None = None,
    report: Callable[[dict[str, LiveFields]], Awaitable[None]] | None = None,
    task_status: TaskStatus[tuple[str, int]] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve jobs of the tables below these roots until cancelled; report host and port for drivers as started.

    It holds no truth: end it at any moment, start it again, run two side by side. ``secret``, at least 32 random bytes,
    makes the keys of jobs: services with the same one serve each other's jobs. When ``ending`` is set, ``/readyz``
    fails, and everything else goes on. ``memory`` is shared with other listeners of the process. ``report`` receives
    the figures of each job twice a second.

    Raises:
        InvalidRequest: an address cannot be served, the secret is too short, or files cannot be used.
    """
    settings = settings or JobServiceSettings()
    batched = replace(markers or MarkerSettings(), kind="batched")
    async with background_tasks() as tasks:
        figures = None if report is None else JobFigures()
        tables = JobTables(roots, tasks, batched, views or ViewSettings(), memory or Memory(DEFAULT_BYTES), figures)
        tasks_settings = ServiceSettings(
            host=settings.host,
            advertised_host=settings.advertised_host or settings.host,  # else the one by which a driver has come
            port=settings.task_port,
            connection_count=settings.connection_count,
        )
        tls = tls_of(settings)
        server = JobServer(secret, tasks_settings, tables, tls=tls)
        routes = JobRoutes(
            roots,
            server.address,
            ending or anyio.Event(),
            rates=Rates(settings.requests_per_s, settings.request_burst),
            tokens=tokens_of(settings),
            advertised_host=settings.advertised_host,
        )
        try:
            async with closing(await listen(settings.host, settings.port, settings="JobServiceSettings")) as listeners:
                await tasks.start(server.run)
                if figures is not None and report is not None:
                    tasks.start_soon(_report, figures, server, report)
                task_status.started(bound_address(listeners[0]))
                await serve_http(listeners, _DriverLimits(settings), routes, tls=tls, answers_one=True)
        finally:
            tables.close()


def tls_of(settings: JobServiceSettings) -> ServerTls | None:
    """Return the certificate that the settings name. Raises InvalidRequest for files that cannot be used."""
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return ServerTls(Path(settings.tls_cert), Path(settings.tls_key))


def tokens_of(settings: JobServiceSettings) -> TokenFile | None:
    """Return the tokens that the settings name. Raises InvalidRequest for a file that cannot be used."""
    return None if settings.tokens is None else TokenFile(Path(settings.tokens))


async def _report(
    figures: JobFigures, server: JobServer, report: Callable[[dict[str, LiveFields]], Awaitable[None]]
) -> None:
    while True:
        started = time.perf_counter()
        await report(figures.report(server.connections()))
        await anyio.sleep(max(REPORT_S, REPORT_SHARE * (time.perf_counter() - started)))  # 1,000 jobs take 10 ms
