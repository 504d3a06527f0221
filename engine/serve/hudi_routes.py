"""The routes by which Hudi's marker client asks a timeline server, and a door to Hudi's own server for the others.

Source: Hudi's ``MarkerOperation`` and ``TimelineServerBasedWriteMarkers``: all parameters are in the query, answers are
JSON. Whatever is not done is answered by an error status: Hudi's writers ignore ``false``.
"""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException

import anyio.to_thread

from tallymark.engine.errors import InvalidRequest, Overloaded
from tallymark.engine.serve.http_peer import HttpRequest, HttpResponse
from tallymark.engine.serve.http_service import Parameters, answered, given_one, json_response
from tallymark.engine.serve.hudi_markers import HudiMarkers
from tallymark.engine.serve.hudi_tables import HudiTables

FOLDER = "/v1/hoodie/marker/"

OVERLOADED_S = 120.0
"""Time in which a request waits for a limit of the service, instead of an error."""

VIEWS_MAX = 64
"""Requests that are passed on at once; further ones wait. Hudi's own server answers with as many threads by default."""


class HudiRoutes:
    """Answers requests of Hudi's clients."""

    def __init__(self, tables: HudiTables, views: "HudiViews | None" = None) -> None:
        self._tables = tables
        self._views = views

    async def answer(self, request: HttpRequest) -> HttpResponse:
        """Return the response, whatever happens but a cancellation."""
        return await answered(self._answer(request))

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        if request.path == "/":
            return HttpResponse(HTTPStatus.OK, b"Tallymark takes markers for Hudi here")
        if not request.path.startswith(FOLDER):
            return await self._other(request)
        route = _ROUTES.get((request.method, request.path.removeprefix(FOLDER)))
        if route is None:
            return HttpResponse(HTTPStatus.NOT_FOUND, f"there is no {request.method} {request.path}\n".encode())
        return json_response(await self._patiently(route, request.parameters()))

    async def _patiently(self, route: "_Route", given: Parameters) -> object:
        """Act as soon as there is room: Hudi's client fails its task at any error status, and waits for 300 s."""
        until = anyio.current_time() + OVERLOADED_S
        while True:
            try:
                markers, instant = self._tables.find(given_one(given, "markerdirpath"))
                return await route(markers, instant, given)
            except Overloaded as error:
                if anyio.current_time() + error.retry_after_s > until:
                    raise
                await anyio.sleep(error.retry_after_s)

    async def _other(self, request: HttpRequest) -> HttpResponse:
        if self._views is None:
            return HttpResponse(HTTPStatus.NOT_FOUND, b"no views are served here: look into storage\n")
        return await self._views.answer(request)


class HudiViews:
    """Hudi's own timeline server, to which requests are passed on."""

    def __init__(self, host: str, port: int, *, timeout_s: float) -> None:
        self._host, self._port, self._timeout_s = host, port, timeout_s
        self._threads = anyio.CapacityLimiter(VIEWS_MAX)

    async def answer(self, request: HttpRequest) -> HttpResponse:
        try:
            return await anyio.to_thread.run_sync(self._ask, request, abandon_on_cancel=True, limiter=self._threads)
        except (OSError, HTTPException, ValueError) as error:
            text = f"the timeline server at {self._host}:{self._port} gives no answer: {error!r}\n"
            return HttpResponse(HTTPStatus.BAD_GATEWAY, text.encode())

    def _ask(self, request: HttpRequest) -> HttpResponse:
        connection = HTTPConnection(self._host, self._port, timeout=self._timeout_s)
        try:
            connection.request(request.method, request.target)
            found = connection.getresponse()
            kind = found.getheader("Content-Type", "text/plain")
            return HttpResponse(HTTPStatus(found.status), found.read(), kind)
        finally:
            connection.close()


async def _create(markers: HudiMarkers, instant: str, given: Parameters) -> bool:
    if "basepath" in given:
        raise InvalidRequest(
            "early conflict detection is not offered here: set "
            "hoodie.write.concurrency.early.conflict.detection.enable=false"
        )
    await markers.create(instant, given_one(given, "markername"))
    return True


_Route = Callable[[HudiMarkers, str, Parameters], Awaitable[object]]

_ROUTES: Mapping[tuple[str, str], _Route] = {
    ("POST", "create"): _create,
    ("POST", "dir/delete"): lambda markers, instant, _: markers.delete(instant),
    ("GET", "dir/exists"): lambda markers, instant, _: markers.exists(instant),
    ("GET", "all"): lambda markers, instant, _: markers.names(instant),
    ("GET", "create-and-merge"): lambda markers, instant, _: markers.names(instant, ios=["CREATE", "MERGE"]),
    ("GET", "append"): lambda markers, instant, _: markers.names(instant, ios=["APPEND"]),
}
