"""The routes by which drivers and probes use a service: the key of a job, and whether the service runs.

- ``POST /v1/jobs?table=URL&instant=T`` answers ``{"job", "host", "port", "key"}``: how the tasks of that job connect.
- ``GET /livez`` and ``GET /readyz`` answer 200; the latter 503 from the moment on when the service is to end.
"""

from collections.abc import Callable
from http import HTTPStatus

import anyio

from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.rpc.handshake import ServiceAddress, job_name
from tallymark.engine.serve.http_peer import HttpRequest, HttpResponse
from tallymark.engine.serve.http_service import answered, given_one, json_response
from tallymark.engine.serve.job_tables import JobTables


class JobRoutes:
    """Answers requests of drivers."""

    def __init__(
        self,
        tables: JobTables,
        address: Callable[[str], ServiceAddress],
        ending: anyio.Event,
        *,
        advertised_host: str | None,
    ) -> None:
        """``address`` returns how tasks connect to the service for a job, by its name. ``ending`` is set when it is
        about to end.
        """
        self._tables = tables
        self._address = address
        self._advertised_host = advertised_host
        self._ending = ending

    async def answer(self, request: HttpRequest) -> HttpResponse:
        return await answered(self._answer(request))

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        match request.method, request.path:
            case "POST", "/v1/jobs":
                given = request.parameters()
                return self._key_of(given_one(given, "table"), given_one(given, "instant"))
            case "GET", "/livez":
                return HttpResponse(HTTPStatus.OK, b"the service runs\n")
            case "GET", "/readyz" if self._ending.is_set():
                return HttpResponse(HTTPStatus.SERVICE_UNAVAILABLE, b"the service is about to end\n")
            case "GET", "/readyz":
                return HttpResponse(HTTPStatus.OK, b"the service takes requests\n")
        return HttpResponse(HTTPStatus.NOT_FOUND, f"there is no {request.method} {request.path}\n".encode())

    def _key_of(self, table: str, instant: str) -> HttpResponse:
        marker_folder(instant)
        name = job_name(instant, self._tables.check(table))
        address = self._address(name)
        return json_response(
            {"job": name, "host": self._advertised_host, "port": address.port, "key": address.job_key.hex()}
        )
