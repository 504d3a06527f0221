"""The REST interface as an ASGI application: each operation with its checks, its tags and its errors."""

import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from http import HTTPStatus
from typing import Any

import anyio
import msgspec
from msgspec import UNSET
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from tallymark.backends.errors import TallymarkError
from tallymark.backends.events import EventLog
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.rpc.handshake import RELEASE
from tallymark.engine.serve.logs import request_id
from tallymark.engine.serve.rest.access import CSRF_HEADER, Access, Gate
from tallymark.engine.serve.rest.actions import ACTIONS, Repeats
from tallymark.engine.serve.rest.calls import BadRequest, Call, Operation
from tallymark.engine.serve.rest.lake import Lake
from tallymark.engine.serve.rest.lake_table import LakeTable
from tallymark.engine.serve.rest.openapi import openapi_document
from tallymark.engine.serve.rest.operations import OPERATIONS, given
from tallymark.engine.serve.rest.problems import problem_response, problem_text
from tallymark.engine.serve.settings import PageSettings
from tallymark.engine.serve.tokens import NotAllowed, Role

ALL_OPERATIONS = (*OPERATIONS, *(action.operation for action in ACTIONS))

HEADERS = {
    "Cache-Control": "private, no-cache",
    "X-Content-Type-Options": "nosniff",
}
"""Of every document: a cache has to ask whether it is still current."""

_JSON = msgspec.json.Decoder(float_hook=lambda text: int(float(text)) if float(text).is_integer() else float(text))
"""In JSON Schema 1.0 is an integer, too."""

HEAVY_COUNT = 4
"""Requests that may have much of a log in memory, such as explanations, that are answered at once; others wait."""

BODY_S = 10.0
"""Time limit for a client to send the whole body of a request."""

Answer = Callable[[Request], Awaitable[Response]]

_events = EventLog(__name__)


class Rest:
    """Answers requests with documents of the lake."""

    def __init__(self, lake: Lake, gate: Gate, repeats: Repeats, settings: PageSettings) -> None:
        self.lake = lake
        self.gate = gate
        self.settings = settings
        self._repeats = repeats
        self.heavy = anyio.CapacityLimiter(HEAVY_COUNT)
        """For requests that may have much of a log in memory, of pages, too."""

    def routes(self) -> list[BaseRoute]:
        routes: list[BaseRoute] = [
            Route(each.path, self.guarded(self._endpoint(each)), methods=[each.method]) for each in ALL_OPERATIONS
        ]
        document = msgspec.json.encode(openapi_document(ALL_OPERATIONS, self.settings.base_path))

        async def openapi(_: Request) -> Response:
            return Response(document, media_type="application/json")

        async def problem(request: Request) -> Response:
            text = problem_text(request.path_params["name"])
            return PlainTextResponse(text or "no such error\n", HTTPStatus.OK if text else HTTPStatus.NOT_FOUND)

        return [*routes, Route("/openapi.json", openapi), Route("/v1/problems/{name}", problem)]

    def guarded(self, answer: Answer) -> Answer:
        """Return the same with errors as problem documents, and an id for the lines that the request logs."""

        async def respond(request: Request) -> Response:
            with request_id(request.headers.get("x-request-id", "")) as id_:
                try:
                    response = await answer(request)
                except Exception as error:
                    if not isinstance(error, TallymarkError):
                        _events.fault("request.failed", instant=None)
                    response = problem_response(error, self.settings.base_path)
                response.headers["X-Request-Id"] = id_
                return response

        return respond

    def access(self, request: Request, *, csrf: str | None = None, is_new: bool = True) -> Access:
        """Return the client of a request; ``csrf`` is that of a form. One that is not ``is_new`` has been counted.

        Raises as ``Gate.access``.
        """
        csrf = csrf or request.headers.get(CSRF_HEADER)
        return self.gate.access(
            request.method, client_of(request), request.headers, request.cookies, csrf=csrf, is_new=is_new
        )

    async def opened(self, access: Access, id_: str, role: Role | None) -> LakeTable:
        """Return a table for a client that has the role for it. Raises NoSuchTable, NotAllowed."""
        table = await self.lake.table(id_, access.may_read)
        if role is not None:
            access.check(role, table.place)
        return table

    def _endpoint(self, operation: Operation) -> Answer:
        async def answer(request: Request) -> Response:
            access = self.access(request)
            query = decoded(request.query_params.multi_items(), operation.query)
            table = None
            if operation.is_of_table:
                table = await self.opened(access, request.path_params["table"], operation.role)
            body = None if operation.body is None else await self._body(request, operation.body)
            is_of_position = operation.is_of_position and not given(getattr(query, "position", UNSET))
            tag = await _position_tag(table) if is_of_position and table is not None else None
            if tag is not None and _has(request, tag):
                return Response(None, HTTPStatus.NOT_MODIFIED, {**HEADERS, "ETag": tag})
            call = Call(lake=self.lake, access=access, query=query, body=body, names=request.path_params, opened=table)
            found = await self._run(request, operation, call)
            return document_response(request, found, tag)

        return answer

    async def _run(self, request: Request, operation: Operation, call: Call) -> object:
        if operation.is_heavy:
            async with self.heavy:
                return await operation.handler(call)
        if operation.role is None or operation.role <= Role.READ:
            return await operation.handler(call)
        token = call.access.token
        if token is None:
            raise NotAllowed("changes need a token")
        key = request.headers.get("idempotency-key")
        if key is not None and not re.fullmatch("[!-~]{1,200}", key):
            raise InvalidRequest("Idempotency-Key has 1 to 200 printable characters of ASCII, and no spaces")
        return await self._repeats.run(token.id, key, (request.url.path, call.body), lambda: operation.handler(call))

    async def _body(self, request: Request, kind: type[msgspec.Struct]) -> msgspec.Struct:
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type != "application/json":
            raise BadRequest(f"content type {content_type!r}: send JSON, as application/json")
        try:
            return msgspec.convert(_JSON.decode(await read_body(request, self.settings.request_bytes)), kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise BadRequest(f"the body is not as the OpenAPI document has it: {error}") from error


def position_of(name: str, text: str) -> int | None:
    """Return a position that a parameter or a header gives; None for none. Raises BadRequest."""
    if text and not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise BadRequest(f"{name}={text!r}: give a position of the log")
    return int(text) if text else None


async def read_body(request: Request, bytes_max: int) -> bytes:
    """Raise BadRequest for a body that is larger."""
    body = bytearray()
    try:
        with anyio.fail_after(BODY_S):
            async with aclosing(request.stream()) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if len(body) > bytes_max:
                        raise BadRequest(f"a body has at most {bytes_max} bytes")
    except (TimeoutError, ClientDisconnect):
        raise BadRequest(f"the body did not arrive within {BODY_S:g} s") from None
    return bytes(body)


def client_of(request: Request) -> str:
    return request.client.host if request.client is not None else ""


def decoded(given: Sequence[tuple[str, str]], kind: type[msgspec.Struct]) -> Any:
    """Return the parameters of a query. Raises BadRequest, with the parameter and the rule."""
    values = dict(given)
    if len(values) < len(given):
        raise BadRequest(f"a parameter is given twice: {sorted(name for name, _ in given)}")
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise BadRequest(f"a parameter is not as the OpenAPI document has it: {error}") from error


def document_response(request: Request, document: object, tag: str | None) -> Response:
    """Return the document; without a tag of its own it has one of its bytes."""
    body = msgspec.json.encode(document)
    if request.method != "GET":
        return Response(body, headers={**HEADERS, "Cache-Control": "no-store"}, media_type="application/json")
    tag = tag or f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    if _has(request, tag):
        return Response(None, HTTPStatus.NOT_MODIFIED, {**HEADERS, "ETag": tag})
    return Response(body, headers={**HEADERS, "ETag": tag}, media_type="application/json")


async def _position_tag(table: LakeTable) -> str:
    """Return a weak tag: what is read after it may be of a later position, never of an earlier one. Archiving and
    another release change answers, too.
    """
    version = await table.version()
    return f'W/"{version.position}-{version.start}-{version.hash[:16]}-{RELEASE}"'


def _has(request: Request, tag: str) -> bool:
    """Return whether the client has the document with this tag (RFC 9110, 13.1.2: compared weakly)."""
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    return request.method == "GET" and tag.removeprefix("W/") in known
