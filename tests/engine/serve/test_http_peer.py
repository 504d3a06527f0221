"""One HTTP client at the end of a socket pair: no loop, no waiting."""

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import closing
from http import HTTPStatus

import pytest

from tallymark.engine.errors import Closed, InvalidRequest
from tallymark.engine.serve.http_peer import HttpPeer, HttpRequest, HttpResponse

LIMIT = 2048
FINE = HttpResponse(HTTPStatus.OK, b"true", "application/json")


@pytest.fixture
def ends() -> Iterator[tuple[HttpPeer, socket.socket]]:
    near, far = connected()
    with closing(near), closing(far):
        yield HttpPeer(near, request_bytes=LIMIT), far


def connected() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        far = socket.create_connection(listener.getsockname())
        near, _ = listener.accept()
    near.setblocking(False)
    return near, far


def read(peer: HttpPeer, far: socket.socket, data: bytes) -> None:
    far.sendall(data)
    for _ in range(1000):
        before = peer._part_bytes, len(peer._requests)
        peer.read()
        if before == (peer._part_bytes, len(peer._requests)):
            return


@pytest.mark.parametrize(
    ("header", "bearer"),
    [
        (b"", ""),
        (b"Authorization: Bearer tmk_a\r\n", "tmk_a"),
        (b"authorization: bearer  tmk_a \r\n", "tmk_a"),
        (b"Authorization: Basic dXNlcg==\r\n", ""),
        (b"X-Authorization: Bearer tmk_a\r\n", ""),
    ],
)
def test_a_token_is_that_of_its_own_request(ends, header, bearer):
    peer, _ = ends
    peer.feed(b"GET /a HTTP/1.1\r\n" + header + b"\r\nGET /b HTTP/1.1\r\n\r\n")
    assert [request.bearer for request in peer._requests] == [bearer, ""]
    assert "tmk_a" not in repr(peer._requests)


def test_a_request_in_any_pieces_is_one_request(ends):
    peer, far = ends
    whole = b"POST /v1/a%20b?markername=x%2Fy HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\nabc"
    for at in range(len(whole)):
        assert peer.take(5) == []
        assert peer.owes
        peer.feed(whole[at : at + 1])
    assert (peer.owes, peer.is_known) == (False, True)
    [request] = peer.take(5)
    assert request == HttpRequest("POST", "/v1/a%20b", "markername=x%2Fy", client="127.0.0.1")
    assert request.parameters() == {"markername": "x/y"}
    assert request.target == "/v1/a%20b?markername=x%2Fy"
    peer.respond(request, FINE)
    assert peer.write() == 1
    assert far.recv(1000) == (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\ntrue")


def test_pipelined_requests_are_answered_one_after_the_other(ends):
    peer, far = ends
    peer.feed(b"GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\nGET /3 HT")
    assert peer.owes
    [first] = peer.take(9)
    assert not peer.can_continue
    assert peer.take(9) == []
    peer.respond(first, FINE)
    peer.write()
    [second] = peer.take(9)
    assert [first.path, second.path] == ["/1", "/2"]
    assert far.recv(1000).count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize("head", [b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n"])
def test_a_connection_ends_with_the_response_where_the_client_wants_that(ends, head):
    peer, far = ends
    peer.feed(head)
    [request] = peer.take(1)
    peer.respond(request, FINE)
    peer.write()
    assert peer.is_leaving
    assert b"\r\nConnection: close\r\n" in far.recv(1000)


def test_a_head_request_gets_no_body(ends):
    peer, far = ends
    peer.feed(b"HEAD / HTTP/1.1\r\n\r\n")
    [request] = peer.take(1)
    peer.respond(request, FINE)
    peer.write()
    assert far.recv(1000).endswith(b"Content-Length: 4\r\n\r\n")


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (b"\x16\x03\x01\x02\x00\x01", "not HTTP/1.1"),
        (b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "not HTTP/1.1"),
        (b"GET / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "not HTTP/1.1"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "not HTTP/1.1"),
        (b"GET /" + b"x" * LIMIT, "at most 2048 bytes"),
        (b"GET / HTTP/1.1\r\nA: " + b"x" * LIMIT, "at most 2048 bytes"),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * LIMIT, "at most 2048 bytes"),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999\r\n\r\n" + b"x" * LIMIT, "at most 2048 bytes"),
    ],
)
def test_what_is_no_request_or_too_large_is_refused_and_the_connection_ends(ends, data, rule):
    peer, far = ends
    with pytest.raises(InvalidRequest, match=rule) as refused:
        peer.feed(data)
    peer.refuse(refused.value)
    peer.write()
    assert peer.is_leaving
    heard = far.recv(5000)
    assert heard.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert rule.encode() in heard


def test_a_client_of_another_network_is_refused_before_it_is_heard():
    near, far = connected()
    with closing(near), closing(far):
        peer = HttpPeer(near, request_bytes=LIMIT, networks=[ipaddress.ip_network("10.0.0.0/8")])
        with pytest.raises(InvalidRequest, match=r"127\.0\.0\.1 is in none of the networks"):
            read(peer, far, b"GET / HTTP/1.1\r\n\r\n")
        assert not peer.is_known
        near_network = ipaddress.ip_network("127.0.0.0/8")
        peer = HttpPeer(near, request_bytes=LIMIT, networks=[near_network])
        read(peer, far, b"GET / HTTP/1.1\r\n\r\n")
        assert peer.is_known


def test_the_end_of_the_service_is_not_said_for_the_client_asks_again(ends):
    peer, _ = ends
    peer.feed(b"GET / HTTP/1.1\r\n\r\n")
    peer.say_end(Closed("it ends"))
    assert not peer.unsent_bytes


@pytest.mark.parametrize(("query", "rule"), [("a=1&a=2", "given twice"), ("a=%FF", "not as a form's")])
def test_a_query_that_says_two_things_or_none_is_refused(query, rule):
    with pytest.raises(InvalidRequest, match=rule):
        HttpRequest("GET", "/", query).parameters()
