"""The fault proxy does what it is told, and otherwise nothing."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic

import pytest

from tests.support.process import await_that
from tests.support.services.fault_plan import Chance, Fault, Kind
from tests.support.services.fault_proxy import FaultProxy, fault_proxy

BODY = bytes(range(256)) * 64


class Store(BaseHTTPRequestHandler):
    """Keeps what is put, and gives it back in chunks or with a length."""

    protocol_version = "HTTP/1.1"
    kept: dict[str, bytes]

    def do_PUT(self) -> None:
        self.kept[self.path] = self.rfile.read(int(self.headers["content-length"]))
        self._answer(200, b"")

    def do_GET(self) -> None:
        if self.path in self.kept and "chunked" in self.path:
            self.send_response(200)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(self.kept[self.path]), self.kept[self.path]))
        elif self.path in self.kept:
            self._answer(200, self.kept[self.path])
        else:
            self._answer(404, b"none")

    def do_HEAD(self) -> None:
        self._answer(200 if self.path in self.kept else 404, self.kept.get(self.path, b""))

    def do_DELETE(self) -> None:
        self.kept.pop(self.path, None)
        self.send_response(204)
        self.end_headers()

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.send_header("x-store", "here")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@dataclass
class Scene:
    proxy: FaultProxy
    kept: dict[str, bytes]
    line: HTTPConnection

    def ask(self, method: str, path: str = "/a", body: bytes | Iterator[bytes] | None = None) -> tuple[int, bytes]:
        try:
            self.line.request(method, path, body)
            answer = self.line.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException):
            self.line.close()
            raise


@pytest.fixture
def scene() -> Iterator[Scene]:
    kept: dict[str, bytes] = {}
    handler = type("Handler", (Store,), {"kept": kept})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        with fault_proxy(f"http://127.0.0.1:{server.server_port}") as proxy:
            line = HTTPConnection(proxy.endpoint.removeprefix("http://"), timeout=30)
            yield Scene(proxy, kept, line)
            line.close()
        server.shutdown()


def test_without_faults_it_changes_nothing_and_keeps_the_connection(scene):
    scene.line.connect()
    line = scene.line.sock
    assert scene.ask("GET") == (404, b"none")
    assert scene.ask("PUT", "/a", BODY) == (200, b"")
    assert scene.ask("PUT", "/chunked", iter([BODY, b"", BODY])) == (200, b"")
    assert scene.ask("GET") == (200, BODY)
    assert scene.ask("GET", "/chunked") == (200, BODY + BODY)
    assert scene.ask("HEAD") == (200, b"")
    assert scene.ask("DELETE") == (204, b"")
    assert scene.line.sock is line
    assert list(scene.kept) == ["/chunked"]
    assert scene.proxy.requests == {"GET": 3, "PUT": 2, "HEAD": 1, "DELETE": 1}
    assert scene.proxy.faults == {}


def test_headers_go_both_ways(scene):
    scene.kept["/a"] = BODY
    scene.line.request("HEAD", "/a")
    answer = scene.line.getresponse()
    assert (answer.getheader("x-store"), answer.getheader("content-length")) == ("here", str(len(BODY)))


def test_a_client_that_waits_for_leave_to_send_its_body_gets_it(scene):
    scene.line.putrequest("PUT", "/a")
    for name, value in (("Expect", "100-continue"), ("Content-Length", "4")):
        scene.line.putheader(name, value)
    scene.line.endheaders()
    assert scene.line.sock.recv(100).startswith(b"HTTP/1.1 100 ")
    scene.line.send(b"rows")
    assert scene.line.getresponse().read() == b""
    assert scene.kept == {"/a": b"rows"}


@pytest.mark.parametrize("status", [409, 429, 500, 503])
def test_a_status_before_means_that_nothing_was_done(scene, status):
    scene.proxy.script(Fault(Kind.STATUS_BEFORE, status), method="PUT")
    answered, body = scene.ask("PUT", "/a", BODY)
    assert (answered, b"<Error><Code>" in body, scene.kept) == (status, True, {})
    assert scene.ask("PUT", "/a", BODY) == (200, b"")
    assert scene.proxy.faults == {f"status before {status}": 1}


def test_a_status_after_means_that_it_was_done(scene):
    scene.proxy.script(Fault(Kind.STATUS_AFTER, 500), method="PUT")
    assert scene.ask("PUT", "/a", BODY)[0] == 500
    assert scene.kept == {"/a": BODY}


def test_a_reset_before_means_that_nothing_was_done(scene):
    scene.proxy.script(Fault(Kind.RESET_BEFORE), method="PUT")
    with pytest.raises(ConnectionResetError):
        scene.ask("PUT", "/a", BODY)
    assert scene.kept == {}
    assert scene.ask("GET") == (404, b"none")


def test_a_reset_after_means_that_it_was_done(scene):
    scene.proxy.script(Fault(Kind.RESET_AFTER), method="PUT")
    with pytest.raises(ConnectionResetError):
        scene.ask("PUT", "/a", BODY)
    assert scene.kept == {"/a": BODY}


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_torn_answer_does_not_come_to_its_end(scene, method):
    scene.kept["/a"] = BODY
    scene.proxy.script(Fault(Kind.TORN), method=method)
    with pytest.raises((OSError, HTTPException)):
        scene.ask(method, "/a", BODY if method == "PUT" else None)
    assert scene.proxy.faults == {"torn": 1}


def test_a_delayed_request_is_done_although_its_client_has_gone(scene):
    scene.proxy.script(Fault(Kind.DELAY, delay_s=0.1), method="PUT")
    scene.line.request("PUT", "/a", BODY)
    scene.line.close()
    await_that(lambda: scene.kept == {"/a": BODY}, "the put has landed")
    await_that(lambda: not scene.proxy.under_way, "nothing is under way")


def test_a_slow_answer_takes_its_time_and_is_whole(scene):
    scene.kept["/a"] = BODY
    scene.proxy.script(Fault(Kind.SLOW, bytes_per_s=len(BODY) * 10), method="GET")
    began = monotonic()
    assert scene.ask("GET") == (200, BODY)
    assert monotonic() - began >= 0.1


def test_a_script_takes_the_request_that_it_was_written_for(scene):
    scripted = scene.proxy.script(Fault(Kind.STATUS_BEFORE), method="PUT", path="^/log/", skip=1, times=2)
    answered = [scene.ask("PUT", path, b"")[0] for path in ("/log/1", "/b", "/log/2", "/b", "/log/3", "/log/4")]
    assert answered == [200, 200, 503, 200, 503, 200]
    assert scripted.happened == 2


def test_chance_gives_each_kind_its_part_and_the_same_with_the_same_seed(scene):
    def weather(seed: int) -> list[str]:
        scene.proxy.let_chance(Chance(seed, 0.1, kinds=(Kind.STATUS_BEFORE, Kind.RESET_AFTER)))
        return [_outcome(scene) for _ in range(200)]

    first = weather(1)
    assert {name: 10 <= first.count(name) <= 32 for name in ("reset", "error")} == {"reset": True, "error": True}
    assert weather(1) == first != weather(2)
    assert set(scene.proxy.faults) <= {"reset after", *(f"status before {status}" for status in (500, 503, 429))}


def _outcome(scene: Scene) -> str:
    try:
        return "fine" if scene.ask("PUT", "/a", b"")[0] == 200 else "error"
    except ConnectionResetError:
        return "reset"


def test_409_comes_by_chance_for_conditional_writes_only(scene):
    scene.proxy.let_chance(Chance(3, 1.0, kinds=(Kind.STATUS_BEFORE,)))
    for _ in range(60):
        scene.ask("PUT", "/a", b"")
    assert scene.proxy.faults["status before 409"] == 0
    for _ in range(60):
        scene.line.request("PUT", "/a", b"", {"If-None-Match": "*"})
        scene.line.getresponse().read()
    assert scene.proxy.faults["status before 409"] > 5


def test_an_error_in_answer_to_a_head_has_no_body(scene):
    scene.kept["/a"] = BODY
    scene.proxy.script(Fault(Kind.STATUS_BEFORE, 503), method="HEAD")
    assert scene.ask("HEAD") == (503, b"")
    assert scene.ask("HEAD") == (200, b"")
    assert scene.ask("GET") == (200, BODY)
