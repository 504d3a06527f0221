"""Errors as problem documents (RFC 9457): their type is the class of the error, their detail its message."""

import math
from http import HTTPStatus
from typing import TypedDict

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tallymark.backends.errors import BackendError, InvalidPath, NotPermitted, TallymarkError, Unavailable
from tallymark.engine.errors import (
    InvalidRequest,
    NotAuthenticated,
    Overloaded,
    Stopped,
    TryAgain,
    UnsupportedTable,
)
from tallymark.engine.serve.rest.access import WrongHost
from tallymark.engine.serve.rest.calls import BadRequest
from tallymark.engine.serve.rest.lake import NoSuchTable
from tallymark.engine.serve.roots import NotServed
from tallymark.engine.serve.tokens import NotAllowed

STATUSES: tuple[tuple[type[Exception], HTTPStatus], ...] = (
    (WrongHost, HTTPStatus.MISDIRECTED_REQUEST),
    (NotAllowed, HTTPStatus.FORBIDDEN),
    (NotServed, HTTPStatus.FORBIDDEN),
    (NotAuthenticated, HTTPStatus.UNAUTHORIZED),
    (NoSuchTable, HTTPStatus.NOT_FOUND),
    (UnsupportedTable, HTTPStatus.NOT_FOUND),
    (BadRequest, HTTPStatus.BAD_REQUEST),
    (InvalidRequest, HTTPStatus.UNPROCESSABLE_ENTITY),
    (InvalidPath, HTTPStatus.UNPROCESSABLE_ENTITY),
    (Overloaded, HTTPStatus.TOO_MANY_REQUESTS),
    (TryAgain, HTTPStatus.SERVICE_UNAVAILABLE),
    (Stopped, HTTPStatus.CONFLICT),
    (Unavailable, HTTPStatus.SERVICE_UNAVAILABLE),
    (NotPermitted, HTTPStatus.BAD_GATEWAY),
    (BackendError, HTTPStatus.BAD_GATEWAY),
)
"""The first that fits counts; any other error is a 500."""


class ProblemDocument(TypedDict):
    type: str
    """Path of a text about errors of this class."""
    title: str
    """The class of the error in Python."""
    status: int
    detail: str
    """What was wrong, the rule, and the remedy."""


def status_of(error: Exception) -> HTTPStatus:
    for kind, status in STATUSES:
        if isinstance(error, kind):
            return status
    return HTTPStatus.INTERNAL_SERVER_ERROR


def problem_response(error: Exception, base_path: str) -> Response:
    if isinstance(error, HTTPException):  # the router's: no such path, or no such method for it
        status, title, detail = HTTPStatus(error.status_code), "InvalidRequest", error.detail
    else:
        is_known = isinstance(error, TallymarkError)
        status = status_of(error)
        title = type(error).__name__ if is_known else "Failure"
        detail = str(error) if is_known else "the service failed; its log says how"
    document: ProblemDocument = {
        "type": f"{base_path}/v1/problems/{title}",
        "title": title,
        "status": status.value,
        "detail": detail,
    }
    headers = {"Cache-Control": "no-store", **(getattr(error, "headers", None) or {})}
    if status is HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, Overloaded):
        headers["Retry-After"] = str(math.ceil(error.retry_after_s))
    elif status is HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = "1"
    return Response(msgspec.json.encode(document), status, headers, "application/problem+json")


def problem_text(name: str) -> str | None:
    """Return what errors of a class mean; None for a name that is none of them."""
    if name == "Failure":
        return "The service failed; its log has the traceback.\n"
    kinds: list[type] = [TallymarkError]
    while kinds:
        kind = kinds.pop()
        if kind.__name__ == name:
            return f"{kind.__doc__}\n"
        kinds += kind.__subclasses__()
    return None
