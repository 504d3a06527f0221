"""A listener of HTTP/1.1 and one task for all of its connections, and what its routes have in common."""

import ipaddress
import json
import math
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Protocol

import anyio
from anyio.abc import SocketListener, TaskGroup

from tallymark.backends.errors import TallymarkError
from tallymark.backends.events import EventLog
from tallymark.engine.errors import InvalidRequest, NotAuthenticated, Overloaded, Stopped, TryAgain
from tallymark.engine.rpc.dispatcher import ConnectionCounts, until_disconnected
from tallymark.engine.rpc.peer import Send
from tallymark.engine.rpc.server import ConnectionLimits, Connections, Start, raw_socket
from tallymark.engine.rpc.tls import ServerTls
from tallymark.engine.serve.http_peer import HttpPeer, HttpRequest, HttpResponse
from tallymark.engine.serve.logs import request_id
from tallymark.engine.serve.roots import NotServed
from tallymark.engine.serve.tokens import NotAllowed

Parameters = Mapping[str, str]

_events = EventLog(__name__)


class HttpLimits(ConnectionLimits, Protocol):
    """Limits of the connections of an HTTP service, as ``HudiServiceSettings`` describes them."""

    @property
    def request_bytes(self) -> int: ...


class Routes(Protocol):
    async def answer(self, request: HttpRequest) -> HttpResponse:
        """Return the response, whatever happens but a cancellation."""
        ...


async def serve_http(
    listeners: Sequence[SocketListener],
    limits: HttpLimits,
    routes: Routes,
    *,
    networks: Sequence[str] = (),
    tls: ServerTls | None = None,
    answers_one: bool = False,
) -> None:
    """Answer requests until cancelled. Of clients outside of these networks, if there are any, nothing is taken.
    ``answers_one``: each connection ends with its first response.
    """
    served = [ipaddress.ip_network(network) for network in networks]

    def welcome(raw: socket.socket) -> HttpPeer:
        return HttpPeer(
            raw if tls is None else tls.wrap(raw),
            request_bytes=limits.request_bytes,
            networks=served,
            answers_one=answers_one,
        )

    connections = Connections(limits, ConnectionCounts(), welcome, partial(_dispatch, routes.answer))
    await connections.run([raw_socket(listener) for listener in listeners])


def _dispatch(
    answer: Callable[[HttpRequest], Awaitable[HttpResponse]], tasks: TaskGroup, send: Send[HttpPeer]
) -> Start[HttpPeer]:
    async def respond(peer: HttpPeer, request: HttpRequest) -> None:
        with until_disconnected([peer]), request_id(request.id) as id_:
            started = anyio.current_time()
            response = await answer(request)
            response.headers["X-Request-Id"] = id_
            _events.debug(
                "request.answered",
                method=request.method,
                path=request.path,
                client=request.client,
                status=response.status.value,
                seconds=anyio.current_time() - started,
            )
            if peer.is_open:
                peer.respond(request, response)
            await send([peer])

    def start(asked: Sequence[tuple[HttpPeer, HttpRequest]]) -> None:
        for peer, request in asked:
            tasks.start_soon(respond, peer, request)

    return start


async def answered(answer: Awaitable[HttpResponse]) -> HttpResponse:
    """Return the response, or the one that an error stands for."""
    try:
        return await answer
    except Exception as error:
        if not isinstance(error, TallymarkError):
            _events.fault("request.failed", instant=None)
        return _refusal(error)


def json_response(value: object) -> HttpResponse:
    return HttpResponse(HTTPStatus.OK, json.dumps(value).encode(), "application/json")


def given_one(given: Parameters, name: str) -> str:
    """Return a parameter that has to be there. Raises InvalidRequest."""
    value = given.get(name, "")
    if not value:
        raise InvalidRequest(f"the parameter {name} is missing")
    return value


def _refusal(error: Exception) -> HttpResponse:
    body = f"{error}\n".encode() if isinstance(error, TallymarkError) else b"the service failed; its log says how\n"
    if isinstance(error, NotServed | NotAllowed):
        return HttpResponse(HTTPStatus.FORBIDDEN, body)
    if isinstance(error, NotAuthenticated):
        return HttpResponse(HTTPStatus.UNAUTHORIZED, body, headers={"WWW-Authenticate": "Bearer"})
    if isinstance(error, InvalidRequest):
        return HttpResponse(HTTPStatus.BAD_REQUEST, body)
    if isinstance(error, Stopped):
        return HttpResponse(HTTPStatus.CONFLICT, body)
    if isinstance(error, Overloaded):
        retry = {"Retry-After": str(math.ceil(error.retry_after_s))}
        return HttpResponse(HTTPStatus.TOO_MANY_REQUESTS, body, headers=retry)
    if isinstance(error, TryAgain):
        return HttpResponse(HTTPStatus.SERVICE_UNAVAILABLE, body, headers={"Retry-After": "1"})
    return HttpResponse(HTTPStatus.INTERNAL_SERVER_ERROR, body)
