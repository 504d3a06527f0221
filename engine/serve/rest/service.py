"""The service for people and their tools: REST, events, metrics and pages on one listener."""

import os
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from http import HTTPStatus

import anyio
from anyio.abc import TaskStatus
from hypercorn.config import Config
from hypercorn.trio import serve
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tallymark.backends.errors import TallymarkError
from tallymark.engine.background import background_tasks
from tallymark.engine.errors import Overloaded
from tallymark.engine.rpc.server import bound_address, closing, listen, raw_socket
from tallymark.engine.rpc.tcp import tune
from tallymark.engine.rpc.tls import ServerTls
from tallymark.engine.serve.job_service import tls_of, tokens_of
from tallymark.engine.serve.memory import DEFAULT_BYTES, Memory
from tallymark.engine.serve.rest.access import Gate
from tallymark.engine.serve.rest.actions import Repeats
from tallymark.engine.serve.rest.app import Rest, position_of
from tallymark.engine.serve.rest.events import Follower
from tallymark.engine.serve.rest.lake import Lake
from tallymark.engine.serve.rest.lake_table import LakeTable
from tallymark.engine.serve.rest.live_jobs import LiveJobs
from tallymark.engine.serve.rest.metrics import exposition
from tallymark.engine.serve.rest.page_routes import PageRoutes
from tallymark.engine.serve.rest.problems import problem_response
from tallymark.engine.serve.roots import Roots
from tallymark.engine.serve.settings import JobServiceSettings, PageSettings, check_page_address
from tallymark.engine.serve.tokens import Role, TokenFile
from tallymark.engine.settings import ViewSettings

PROBES = ("/livez", "/readyz")
"""Paths that are answered whatever host a request names: probes name an address."""

EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"

EVENT_STREAM = "text/event-stream"

STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

PROTOCOLS = ("http/1.1",)

KEEP_ALIVE_S = 75.0
"""Time after which a connection without requests is closed: longer than the interval at which pages are refreshed."""

ENDING_S = 1.0
"""Time that open requests have to end in when the service ends."""


@asynccontextmanager
async def lake_app(
    roots: Roots,
    secret: bytes,
    settings: PageSettings | None = None,
    *,
    tokens: TokenFile | None = None,
    is_secure: bool = False,
    views: ViewSettings | None = None,
    memory: Memory | None = None,
    live: LiveJobs | None = None,
    ending: anyio.Event | None = None,
) -> AsyncIterator[ASGIApp]:
    """Yield the tables below these roots as an ASGI application, for the block: for a server of its own, or of others.

    ``is_secure``: it is reached by TLS alone. ``live`` has figures of jobs. When ``ending`` is set, ``/readyz`` fails,
    and streams of events end. Belongs to one event loop.
    """
    settings, ending = settings or PageSettings(), ending or anyio.Event()
    async with background_tasks() as tasks:
        lake = Lake(
            roots,
            settings,
            tasks,
            views=views or ViewSettings(),
            memory=memory or Memory(DEFAULT_BYTES),
            live=live or LiveJobs(),
        )
        rest = Rest(lake, Gate(settings, tokens, secret), Repeats(tasks), settings)
        try:
            yield _Checked(_application(rest, ending, is_secure=is_secure), rest)
        finally:
            lake.close()


async def serve_page(
    roots: Roots,
    secret: bytes,
    settings: PageSettings | None = None,
    *,
    jobs: JobServiceSettings | None = None,
    views: ViewSettings | None = None,
    memory: Memory | None = None,
    live: LiveJobs | None = None,
    ending: anyio.Event | None = None,
    task_status: TaskStatus[tuple[str, int]] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve ``lake_app`` until cancelled; report host and port as started. On trio.

    Certificate and tokens are those of the service for jobs, ``jobs``.

    Raises:
        InvalidRequest: the address cannot be served, or files cannot be used.
    """
    settings, jobs = settings or PageSettings(), jobs or JobServiceSettings()
    check_page_address(settings, jobs)
    tls = tls_of(jobs)
    app = lake_app(
        roots,
        secret,
        settings,
        tokens=tokens_of(jobs),
        is_secure=tls is not None,
        views=views,
        memory=memory,
        live=live,
        ending=ending,
    )
    async with app as served, closing(await listen(settings.host, settings.port, settings="PageSettings")) as listeners:
        task_status.started(bound_address(listeners[0]))
        sockets = [raw_socket(each) for each in listeners]
        for each in sockets:
            tune(each)  # for the connections that it accepts: one whose client reads nothing for half a minute fails
        await serve(served, _config([each.fileno() for each in sockets], tls))  # type: ignore[arg-type]


def _application(rest: Rest, ending: anyio.Event, *, is_secure: bool) -> Starlette:
    """Return everything below the base path."""
    pages = PageRoutes(rest, is_secure=is_secure)
    routes = [*pages.routes(), *rest.routes(), *_streams(rest, ending), *_probes(ending)]
    base = rest.settings.base_path

    def refuse(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return problem_response(error, base)

    below = [Mount(base, routes=routes), *_probes(ending)] if base else routes
    return Starlette(routes=below, exception_handlers={HTTPException: refuse})


def _streams(rest: Rest, ending: anyio.Event) -> list[BaseRoute]:
    open_count = 0

    async def follow(request: Request) -> Response:
        nonlocal open_count
        id_ = request.path_params["table"]
        await rest.opened(rest.access(request), id_, Role.READ)
        after = position_of("after", request.headers.get("last-event-id") or request.query_params.get("after", ""))
        if request.method == "HEAD":
            return Response(headers=STREAM_HEADERS, media_type=EVENT_STREAM)

        async def opened() -> LakeTable:
            return await rest.opened(rest.access(request, is_new=False), id_, Role.READ)

        follower = Follower(rest.lake, rest.settings, opened)
        await follower.start(after)
        if open_count >= rest.settings.stream_count:
            raise Overloaded(f"{open_count} clients wait for events already", retry_after_s=5)
        open_count += 1

        async def stream() -> AsyncIterator[bytes]:
            async with aclosing(follower.events()) as found:
                async for event in found:
                    if ending.is_set():
                        return
                    yield event

        def ended() -> None:
            nonlocal open_count
            open_count -= 1

        return _Stream(stream(), ended)

    async def metrics(request: Request) -> Response:
        found = await rest.lake.summaries(rest.access(request).may_read)
        return Response(exposition(found), headers={"Cache-Control": "no-store"}, media_type=EXPOSITION)

    return [
        Route("/v1/tables/{table}/events", rest.guarded(follow)),
        Route("/metrics", rest.guarded(metrics)),
    ]


class _Stream(StreamingResponse):
    """Calls back when it has ended, in every case."""

    def __init__(self, events: AsyncIterator[bytes], ended: Callable[[], None]) -> None:
        super().__init__(events, headers=STREAM_HEADERS, media_type=EVENT_STREAM)
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


def _probes(ending: anyio.Event) -> list[BaseRoute]:
    async def livez(_: Request) -> Response:
        return PlainTextResponse("the service runs\n")

    async def readyz(_: Request) -> Response:
        if ending.is_set():
            return PlainTextResponse("the service is about to end\n", HTTPStatus.SERVICE_UNAVAILABLE)
        return PlainTextResponse("the service runs\n")

    return [Route("/livez", livez), Route("/readyz", readyz)]


class _Checked:
    """Refuses requests for other hosts, and changes from other sites, before anything else is done."""

    def __init__(self, app: ASGIApp, rest: Rest) -> None:
        self._app = app
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["http_version"] not in ("1.0", "1.1"):  # without TLS, by an upgrade
            text = PlainTextResponse("HTTP/1.1 is spoken here\n", HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
            await text(scope, receive, send)
            return
        if scope["type"] == "http" and scope["path"] not in PROBES:
            request = Request(scope)
            try:
                self._rest.gate.check_host(request.method, request.headers)
            except TallymarkError as error:
                await problem_response(error, self._rest.settings.base_path)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class _Config(Config):
    """Hypercorn's configuration with a certificate that may be replaced while it runs."""

    tls: ServerTls | None = None

    @property
    def ssl_enabled(self) -> bool:
        return self.tls is not None

    def create_ssl_context(self) -> ssl.SSLContext | None:
        return None if self.tls is None else self.tls.context(protocols=PROTOCOLS)


def _config(descriptors: list[int], tls: ServerTls | None) -> Config:
    config = _Config()
    config.tls = tls
    config.bind = [f"fd://{os.dup(descriptor)}" for descriptor in descriptors]  # it closes them
    config.accesslog = config.errorlog = None
    config.graceful_timeout = ENDING_S
    config.include_server_header = False
    config.keep_alive_timeout = KEEP_ALIVE_S
    return config
