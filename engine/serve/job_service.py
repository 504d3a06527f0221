"""The service that jobs name whose tasks cannot reach their driver: one listener for drivers, one for tasks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio
from anyio.abc import TaskStatus

from tallymark.backends.options import StorageOptions
from tallymark.engine.background import background_tasks
from tallymark.engine.rpc.server import JobServer, bound_address
from tallymark.engine.serve.http_service import http_listeners, serve_http
from tallymark.engine.serve.job_routes import JobRoutes
from tallymark.engine.serve.job_tables import JobTables
from tallymark.engine.serve.roots import Roots
from tallymark.engine.settings import JobServiceSettings, MarkerSettings, ServiceSettings, ViewSettings


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
    roots: Sequence[str],
    secret: bytes,
    settings: JobServiceSettings | None = None,
    *,
    markers: MarkerSettings | None = None,
    views: ViewSettings | None = None,
    options: StorageOptions | None = None,
    ending: anyio.Event | None = None,
    task_status: TaskStatus[tuple[str, int]] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve jobs of the tables below these roots until cancelled; report host and port for drivers as started.

    It holds no truth: end it at any moment, start it again, run two side by side. ``secret``, at least 32 random bytes,
    makes the keys of jobs: services with the same one serve each other's jobs. When ``ending`` is set, ``/readyz``
    fails, and everything else goes on.

    Raises:
        InvalidRequest: a root, or an address, cannot be served, or the secret is too short.
    """
    settings = settings or JobServiceSettings()
    batched = replace(markers or MarkerSettings(), kind="batched")
    async with background_tasks() as tasks:
        tables = JobTables(Roots(roots, options), tasks, batched, views or ViewSettings())
        tasks_settings = ServiceSettings(
            host=settings.host, port=settings.task_port, connection_count=settings.connection_count
        )
        server = JobServer(secret, tasks_settings, tables)
        routes = JobRoutes(tables, server.address, ending or anyio.Event(), advertised_host=settings.advertised_host)
        try:
            async with http_listeners(settings.host, settings.port, settings="JobServiceSettings") as listeners:
                await tasks.start(server.run)
                task_status.started(bound_address(listeners[0]))
                await serve_http(listeners, _DriverLimits(settings), routes)
        finally:
            tables.close()
