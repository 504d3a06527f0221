"""One client of an HTTP/1.1 service: its requests, one in flight at a time, and their responses.

Owns: the limit of a request, and what a response looks like. Does not own: what a request means. ``httptools`` parses.
"""

import ipaddress
import socket
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qsl

from tallymark.engine.errors import InvalidRequest, MissingExtra, Stopped
from tallymark.engine.rpc.peer import Peer

try:
    import httptools
except ImportError as error:
    raise MissingExtra("httptools is not installed: pip install 'tallymark[serve]'") from error

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request; its body and its headers have no meaning, but for the credentials and its id."""

    method: str
    path: str
    """As it was sent, percent-encoded."""
    query: str
    keeps_alive: bool = True
    client: str = ""
    """Address of the client."""
    bearer: str = field(default="", repr=False)
    """The token that it has presented."""
    id: str = ""
    """What it has named its request (``X-Request-Id``)."""

    @property
    def target(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path

    def parameters(self) -> dict[str, str]:
        """Return the parameters of the query. Raises InvalidRequest for one that is given twice, or not in UTF-8."""
        try:
            pairs = parse_qsl(self.query, keep_blank_values=True, errors="strict")
        except ValueError as error:
            raise InvalidRequest(f"the query is not as a form's: {error}") from error
        found = dict(pairs)
        if len(found) < len(pairs):
            raise InvalidRequest(f"a parameter is given twice: {sorted(name for name, _ in pairs)}")
        return found


@dataclass(frozen=True, slots=True)
class HttpResponse:
    status: HTTPStatus
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)


class HttpPeer(Peer):
    """A ``Peer`` that speaks HTTP/1.1."""

    def __init__(
        self,
        raw: socket.socket,
        *,
        request_bytes: int,
        networks: Sequence[Network] = (),
        answers_one: bool = False,
    ) -> None:
        """``request_bytes`` bounds a request, with its head. Of peers of other ``networks``, if there are any, nothing
        is taken. ``answers_one``: the connection ends with its first response.
        """
        super().__init__(raw, inflight_count=1)
        self._request_bytes = request_bytes
        self._networks = networks
        self._answers_one = answers_one
        self._parser = httptools.HttpRequestParser(self)
        self._requests: deque[HttpRequest] = deque()
        self._url = b""
        self._part_bytes = 0
        """Bytes of the request that is being received."""
        self._is_partial = True
        self._is_known = False
        self._bearer = self._id = ""
        self._client = raw.getpeername()[0]

    @property
    def is_known(self) -> bool:
        return self._is_known

    @property
    def owes(self) -> bool:
        return self._is_partial

    @property
    def has_requests(self) -> bool:
        return bool(self._requests)

    def feed(self, data: bytes) -> None:
        if not self._is_known:
            self._check_network()
        self._part_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            raise InvalidRequest(f"this is not HTTP/1.1 as it is spoken here: {error}") from error
        if self._is_partial and self._part_bytes > self._request_bytes:
            raise InvalidRequest(f"a request has at most {self._request_bytes} bytes, with its head")

    def _check_network(self) -> None:
        address = ipaddress.ip_address(self._client)
        if self._networks and not any(address in network for network in self._networks):
            raise InvalidRequest(f"{address} is in none of the networks that are served here")

    def on_message_begin(self) -> None:
        self._url, self._bearer, self._id, self._is_partial = b"", "", "", True

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"authorization":
            scheme, _, token = value.decode("latin-1").partition(" ")
            self._bearer = token.strip() if scheme.lower() == "bearer" else ""
        if name.lower() == b"x-request-id":
            self._id = value.decode("latin-1")

    def on_message_complete(self) -> None:
        path, _, query = self._url.decode("latin-1").partition("?")
        method = self._parser.get_method().decode("latin-1")
        keeps_alive = self._parser.should_keep_alive() and not self._answers_one
        request = HttpRequest(method, path, query, keeps_alive, client=self._client, bearer=self._bearer, id=self._id)
        self._requests.append(request)
        self._part_bytes, self._is_partial, self._is_known = 0, False, True

    def take(self, count_max: int) -> list[HttpRequest]:
        if not self.can_continue:
            return []
        self.free -= 1
        return [self._requests.popleft()]

    def respond(self, request: HttpRequest, response: HttpResponse) -> None:
        """Queue the response; the request ends with it, and the connection where the client has asked for that."""
        self._unsent += _encoded(response, has_body=request.method != "HEAD", keeps_alive=request.keeps_alive)
        self.ending += 1
        if not request.keeps_alive:
            self.drop_requests()
            self.is_leaving = True

    def refuse(self, error: InvalidRequest) -> None:
        self.drop_requests()
        response = HttpResponse(HTTPStatus.BAD_REQUEST, f"{error}\n".encode())
        self._unsent += _encoded(response, keeps_alive=False)
        self.is_leaving = True

    def say_end(self, error: Stopped) -> None:
        """Say nothing: a client asks again when the connection ends without a response, and gives up at a status."""

    def drop_requests(self) -> None:
        self._requests.clear()


def _encoded(response: HttpResponse, *, has_body: bool = True, keeps_alive: bool) -> bytes:
    headers = {"Content-Type": response.content_type, "Content-Length": str(len(response.body)), **response.headers}
    if not keeps_alive:
        headers["Connection"] = "close"
    lines = [f"HTTP/1.1 {response.status.value} {response.status.phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (response.body if has_body else b"")
