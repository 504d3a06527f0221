"""The routes by which drivers and probes use a service: the key of a job, and whether the service runs.

- ``POST /v1/jobs?table=URL&instant=T`` answers ``{"job", "host", "port", "key", "release", "protocols"}``: how the
  tasks of that job connect, and which versions of the wire protocol they may speak.
- ``POST /v1/commits?table=URL`` answers the same for drivers, which have their commits decided there.
- ``GET /livez`` and ``GET /readyz`` answer 200; the latter 503 from the moment on when the service is to end.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus

import anyio

from tallymark.backends.errors import TallymarkError
from tallymark.engine.errors import NotAuthenticated, Overloaded
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.rpc.handshake import COMMITS, PROTOCOLS, RELEASE, ServiceAddress, job_name
from tallymark.engine.serve.audit import audited
from tallymark.engine.serve.http_peer import HttpRequest, HttpResponse
from tallymark.engine.serve.http_service import answered, given_one, json_response
from tallymark.engine.serve.rates import Rates
from tallymark.engine.serve.roots import Roots, place_of
from tallymark.engine.serve.tokens import Role, Token, TokenFile

Operation = tuple[str, str]
"""Method and path."""

KEY_OF_JOB: Operation = ("POST", "/v1/jobs")
KEY_OF_COMMITS: Operation = ("POST", "/v1/commits")

ROLES: Mapping[Operation, Role | None] = {
    KEY_OF_JOB: Role.WRITE,
    KEY_OF_COMMITS: Role.WRITE,
    ("GET", "/livez"): None,
    ("GET", "/readyz"): None,
}
"""What each operation needs, on the table that it names; None: nothing. There are no other operations."""


class JobRoutes:
    """Answers requests of drivers."""

    def __init__(
        self,
        roots: Roots,
        address: Callable[[str], ServiceAddress],
        ending: anyio.Event,
        *,
        rates: Rates,
        tokens: TokenFile | None = None,
        advertised_host: str | None = None,
    ) -> None:
        """``address`` returns how tasks connect to the service for a job, by its name. ``ending`` is set when it is
        about to end. Without ``tokens`` every client may do everything.
        """
        self._roots = roots
        self._address = address
        self._ending = ending
        self._rates = rates
        self._tokens = tokens
        self._advertised_host = advertised_host

    async def answer(self, request: HttpRequest) -> HttpResponse:
        return await answered(self._answer(request))

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        operation = request.method, request.path
        if operation not in ROLES:
            return HttpResponse(HTTPStatus.NOT_FOUND, f"there is no {request.method} {request.path}\n".encode())
        if operation == KEY_OF_JOB:
            return self._key(request, given_one(request.parameters(), "instant"))
        if operation == KEY_OF_COMMITS:
            return self._key(request, None)
        if request.path == "/readyz" and self._ending.is_set():
            return HttpResponse(HTTPStatus.SERVICE_UNAVAILABLE, b"the service is about to end\n")
        return HttpResponse(HTTPStatus.OK, b"the service runs\n")

    def _key(self, request: HttpRequest, instant: str | None) -> HttpResponse:
        """Answer with the key of the job with this instant; None: with that of the table's commits."""
        place = place_of(given_one(request.parameters(), "table"))
        if instant is not None:
            marker_folder(instant)
        token, outcome = None, "answered"
        try:
            found = self._authenticate(request)
            token = None if found is None else found.id
            self._count(token or request.client)
            _check_role(found, ROLES[request.method, request.path], place)
            self._roots.root_of(place)
            name = job_name(instant or COMMITS, place)
        except TallymarkError as error:
            outcome = type(error).__name__
            raise
        finally:
            what = "key of commits" if instant is None else "key of job"
            audited(what, client=request.client, token=token, table=place, instant=instant or "", outcome=outcome)
        address = self._address(name)
        return json_response(
            {
                "job": name,
                "host": self._advertised_host,
                "port": address.port,
                "key": address.job_key.hex(),
                "release": RELEASE,
                "protocols": PROTOCOLS,
            }
        )

    def _authenticate(self, request: HttpRequest) -> Token | None:
        """Return the client's token; None where none is needed.

        Raises:
            NotAuthenticated: it has none that is known.
            Overloaded: requests without one arrive too often from its address.
        """
        if self._tokens is None:
            return None
        try:
            return self._tokens.authenticate(request.bearer)
        except NotAuthenticated:
            self._count(request.client)
            raise

    def _count(self, client: str) -> None:
        if wait_s := self._rates.wait_s(client, anyio.current_time()):
            raise Overloaded(f"{client} sends too many requests", retry_after_s=wait_s)


def _check_role(token: Token | None, role: Role | None, place: str) -> None:
    if token is not None and role is not None:
        token.check(role, place)
