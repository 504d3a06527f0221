"""The service that Hudi's writers ask for their markers: a listener, and one task for all connections."""

import ipaddress
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import anyio
from anyio.abc import TaskGroup, TaskStatus

from tallymark.backends.options import StorageOptions
from tallymark.engine.background import background_tasks
from tallymark.engine.rpc.dispatcher import ConnectionCounts, until_disconnected
from tallymark.engine.rpc.peer import Send
from tallymark.engine.rpc.server import Connections, Start, bound_address, listen, raw_socket
from tallymark.engine.serve.http_peer import HttpPeer, HttpRequest
from tallymark.engine.serve.hudi_routes import HudiRoutes, HudiViews
from tallymark.engine.serve.hudi_tables import HudiTables
from tallymark.engine.settings import HudiServiceSettings, MarkerSettings


async def serve_hudi(
    roots: Sequence[str],
    settings: HudiServiceSettings | None = None,
    *,
    markers: MarkerSettings | None = None,
    options: StorageOptions | None = None,
    task_status: TaskStatus[tuple[str, int]] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Take markers of Hudi's writers for the tables below these roots until cancelled; report host and port as started.

    It holds no truth: end it at any moment, start it again, run two side by side.

    Raises:
        InvalidRequest: a root, or an address, cannot be served.
    """
    settings = settings or HudiServiceSettings()
    batched = replace(markers or MarkerSettings(), kind="batched")
    async with background_tasks() as tasks:
        tables = HudiTables(roots, tasks, batched, options=options)
        listeners = await listen(settings.host, settings.port, settings="HudiServiceSettings")
        try:
            bound = bound_address(listeners[0])
            connections = Connections(
                settings,
                ConnectionCounts(),
                partial(
                    HttpPeer,
                    request_bytes=settings.request_bytes,
                    networks=[ipaddress.ip_network(network) for network in settings.networks],
                ),
                partial(_dispatch, HudiRoutes(tables, _views(settings))),
            )
            task_status.started(bound)
            await connections.run([raw_socket(listener) for listener in listeners])
        finally:
            for listener in listeners:
                with anyio.CancelScope(shield=True):
                    await listener.aclose()


def _views(settings: HudiServiceSettings) -> HudiViews | None:
    if settings.views is None:
        return None
    host, _, port = settings.views.rpartition(":")
    return HudiViews(host, int(port), timeout_s=settings.views_timeout_s)


def _dispatch(routes: HudiRoutes, tasks: TaskGroup, send: Send[HttpPeer]) -> Start[HttpPeer]:
    async def answer(peer: HttpPeer, request: HttpRequest) -> None:
        with until_disconnected([peer]):
            response = await routes.answer(request)
            if peer.is_open:
                peer.respond(request, response)
            await send([peer])

    def start(asked: Sequence[tuple[HttpPeer, HttpRequest]]) -> None:
        for peer, request in asked:
            tasks.start_soon(answer, peer, request)

    return start
