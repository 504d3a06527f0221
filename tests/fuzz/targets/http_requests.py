"""What clients of ``tallymark serve`` send by HTTP: drivers, probes and Hudi's writers."""

import socket
from urllib.parse import urlencode

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.markers.name import INFIX, marker_line
from tallymark.engine.serve.http_peer import HttpPeer, HttpRequest
from tallymark.engine.serve.roots import place_of

INSTANT = "20260102030405006"
REQUEST_BYTES = 2048


def seeds() -> list[bytes]:
    folder = f"file:/data/lake/flights/.hoodie/.temp/{INSTANT}"
    marker = f"month=5/öa b_0-1-2_{INSTANT}.parquet.marker.CREATE"
    job = urlencode({"table": "s3a://lake/flights", "instant": INSTANT})
    create = urlencode({"markerdirpath": folder, "markername": marker})
    return [
        f"POST /v1/jobs?{job} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\nX-Request-Id: 7\r\n\r\n".encode(),
        f"POST /v1/hoodie/marker/create?{create} HTTP/1.1\r\nContent-Length: 2\r\n\r\nxx".encode(),
        f"GET /v1/hoodie/marker/all?{create} HTTP/1.1\r\n\r\n".encode() * 2,
        b"GET /livez HTTP/1.0\r\n\r\n",
    ]


def target(data: bytes) -> bool:
    peer = HttpPeer(_CONNECTED, request_bytes=REQUEST_BYTES)
    try:
        peer.feed(data)
        requests = []
        while peer.has_requests:
            requests += peer.take(1)
            peer.free += 1
        for request in requests:
            _check(request)
    except InvalidRequest:
        return False
    assert len(data) <= REQUEST_BYTES or requests, "a request has a limit, also one that does not end"
    return bool(requests)


def _check(request: HttpRequest) -> None:
    given = request.parameters()
    for name in ("table", "markerdirpath"):
        if name in given:
            place = place_of(given[name])
            assert place_of(place) == place
            assert not {"", ".", ".."} & {*place.partition("/")[2].removeprefix("/").split("/")}
    if "markername" in given:
        path, _, io = given["markername"].rpartition(INFIX)
        assert "\n" not in marker_line(path, io)


def _connected() -> socket.socket:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        _ENDS.append(socket.create_connection(listener.getsockname()))
        return listener.accept()[0]


_ENDS: list[socket.socket] = []
_CONNECTED = _connected()
"""A connection on which nothing is sent: a peer is of a socket."""
