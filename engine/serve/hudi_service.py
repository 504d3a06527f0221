"""The service that Hudi's writers ask for their markers."""

from dataclasses import replace

import anyio
from anyio.abc import TaskStatus

from tallymark.engine.background import background_tasks
from tallymark.engine.rpc.server import bound_address, closing, listen
from tallymark.engine.serve.http_service import serve_http
from tallymark.engine.serve.hudi_routes import HudiRoutes, HudiViews
from tallymark.engine.serve.hudi_tables import HudiTables
from tallymark.engine.serve.memory import DEFAULT_BYTES, Memory
from tallymark.engine.serve.roots import Roots
from tallymark.engine.serve.settings import HudiServiceSettings
from tallymark.engine.settings import MarkerSettings


async def serve_hudi(
    roots: Roots,
    settings: HudiServiceSettings | None = None,
    *,
    markers: MarkerSettings | None = None,
    memory: Memory | None = None,
    task_status: TaskStatus[tuple[str, int]] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Take markers of Hudi's writers for the tables below these roots until cancelled; report host and port as started.

    It holds no truth: end it at any moment, start it again, run two side by side. ``memory`` is shared with other
    listeners of the process.

    Raises:
        InvalidRequest: an address cannot be served.
    """
    settings = settings or HudiServiceSettings()
    batched = replace(markers or MarkerSettings(), kind="batched")
    async with background_tasks() as tasks:
        routes = HudiRoutes(HudiTables(roots, tasks, batched, memory or Memory(DEFAULT_BYTES)), _views(settings))
        async with closing(await listen(settings.host, settings.port, settings="HudiServiceSettings")) as listeners:
            task_status.started(bound_address(listeners[0]))
            await serve_http(listeners, settings, routes, networks=settings.networks)


def _views(settings: HudiServiceSettings) -> HudiViews | None:
    if settings.views is None:
        return None
    host, _, port = settings.views.rpartition(":")
    return HudiViews(host, int(port), timeout_s=settings.views_timeout_s)
