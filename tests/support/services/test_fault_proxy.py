"""The fault proxy injects the faults of its script or of chance, and otherwise changes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from time import monotonic

import pytest

from tests.support.process import await_that
from tests.support.services.fault_plan import Chance, Fault, Kind
from tests.support.services.fault_proxy import FaultProxy, fault_proxy
from tests.support.services.scripted_http import Asked, Say, ScriptedServer, scripted_server

BODY = bytes(range(256)) * 64


@dataclass
class Scene:
    proxy: FaultProxy
    store: ScriptedServer
    line: HTTPConnection
    kept: dict[str, bytes] = field(default_factory=dict)

    @property
    def puts(self) -> list[str]:
        return [asked.target for asked in self.store.asked if asked.method == "PUT"]

    def answer(self, asked: Asked) -> Say:
        """A store's, of what was put."""
        if asked.method == "PUT":
            self.kept[asked.target] = asked.body
            return Say(200)
        return Say(200 if asked.target in self.kept else 404, self.kept.get(asked.target, b"none"))

    def send(
        self, method: str, path: str = "/a", body: bytes | Iterator[bytes] | None = None, **headers: str
    ) -> tuple[int, bytes]:
        try:
            self.line.request(method, path, body, headers)
            answer = self.line.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException):
            self.line.close()
            raise


@pytest.fixture
def scene() -> Iterator[Scene]:
    with scripted_server() as store, fault_proxy(store.endpoint) as proxy:
        line = HTTPConnection(proxy.endpoint.removeprefix("http://"), timeout=30)
        scene = Scene(proxy, store, line)
        store.answer = scene.answer
        yield scene
        line.close()


def test_without_faults_it_changes_nothing_and_keeps_the_connection(scene):
    scene.line.connect()
    line = scene.line.sock
    assert scene.send("GET") == (404, b"none")
    assert scene.send("PUT", "/a", BODY) == (200, b"")
    assert scene.send("PUT", "/chunked", iter([BODY, b"", BODY])) == (200, b"")
    assert scene.send("GET", "/chunked") == (200, BODY + BODY)
    assert scene.send("HEAD") == (200, b"")
    assert scene.line.sock is line
    assert scene.proxy.requests == {"GET": 2, "PUT": 2, "HEAD": 1}
    assert scene.proxy.faults == {}


@pytest.mark.parametrize(
    ("fault", "answer", "is_done"),
    [
        *((Fault(Kind.STATUS_BEFORE, status), status, False) for status in (409, 429, 500, 503)),
        (Fault(Kind.STATUS_AFTER, 500), 500, True),
        (Fault(Kind.RESET_BEFORE), ConnectionResetError, False),
        (Fault(Kind.RESET_AFTER), ConnectionResetError, True),
        (Fault(Kind.TORN), (OSError, HTTPException), True),
        (Fault(Kind.FALSE_412), 412, False),
    ],
    ids=lambda value: value.name if isinstance(value, Fault) else "",
)
def test_a_put_that_meets_a_fault_is_done_or_not_and_the_next_one_is_fine(scene, fault, answer, is_done):
    scene.proxy.script(fault, method="PUT")
    if isinstance(answer, int):
        assert scene.send("PUT", "/a", BODY)[0] == answer
    else:
        with pytest.raises(answer):
            scene.send("PUT", "/a", BODY)
    assert scene.kept == ({"/a": BODY} if is_done else {})
    assert scene.send("PUT", "/b", BODY) == (200, b"")
    assert scene.proxy.faults == {fault.name: 1}


def test_a_torn_get_does_not_end_and_an_error_in_answer_to_a_head_has_no_body(scene):
    scene.kept["/a"] = BODY
    scene.proxy.script(Fault(Kind.TORN), method="GET")
    scene.proxy.script(Fault(Kind.STATUS_BEFORE, 503), method="HEAD")
    with pytest.raises((OSError, HTTPException)):
        scene.send("GET")
    assert [scene.send("HEAD") for _ in range(2)] == [(503, b""), (200, b"")]


def test_a_delayed_request_is_done_although_its_client_has_gone(scene):
    scene.proxy.script(Fault(Kind.DELAY, delay_s=0.1), method="PUT")
    scene.line.request("PUT", "/a", BODY)
    scene.line.close()
    await_that(lambda: scene.kept == {"/a": BODY}, "the put has landed")
    await_that(lambda: not scene.proxy.under_way, "nothing is under way")


@pytest.mark.parametrize("fault", [Fault(Kind.TWICE), Fault(Kind.AGAIN, delay_s=0.01)], ids=lambda fault: fault.name)
def test_a_put_is_answered_and_done_twice(scene, fault):
    scene.proxy.script(fault, method="PUT")
    assert scene.send("PUT", "/a", BODY) == (200, b"")
    await_that(lambda: scene.puts == ["/a", "/a"], "it was done twice")
    await_that(lambda: not scene.proxy.under_way, "nothing is under way")


def test_lies_are_told_only_of_requests_that_they_may_befall(scene):
    scene.proxy.let_chance(Chance(1, 0.5, kinds=(Kind.FALSE_412, Kind.AGAIN)))
    for _ in range(20):
        scene.send("PUT", "/data.parquet", b"")
        scene.send("GET")
    assert scene.proxy.faults == {}


def test_a_slow_answer_takes_its_time_and_is_whole(scene):
    scene.kept["/a"] = BODY
    scene.proxy.script(Fault(Kind.SLOW, bytes_per_s=len(BODY) * 10), method="GET")
    started = monotonic()
    assert scene.send("GET") == (200, BODY)
    assert monotonic() - started >= 0.1


def test_a_script_takes_the_request_that_it_was_written_for(scene):
    scripted = scene.proxy.script(Fault(Kind.STATUS_BEFORE), method="PUT", path="^/log/", skip=1, times=2)
    answered = [scene.send("PUT", path, b"")[0] for path in ("/log/1", "/b", "/log/2", "/b", "/log/3", "/log/4")]
    assert answered == [200, 200, 503, 200, 503, 200]
    assert scripted.happened == 2


def test_chance_gives_each_kind_its_part_and_the_same_with_the_same_seed(scene):
    def outcome() -> str:
        try:
            return "fine" if scene.send("PUT", "/a", b"")[0] == 200 else "error"
        except ConnectionResetError:
            return "reset"

    def outcomes(seed: int) -> list[str]:
        scene.proxy.let_chance(Chance(seed, 0.1, kinds=(Kind.STATUS_BEFORE, Kind.RESET_AFTER)))
        return [outcome() for _ in range(200)]

    first = outcomes(1)
    assert {name: 10 <= first.count(name) <= 32 for name in ("reset", "error")} == {"reset": True, "error": True}
    assert outcomes(1) == first != outcomes(2)
    assert set(scene.proxy.faults) <= {"reset after", *(f"status before {status}" for status in (500, 503, 429))}


def test_409_is_answered_by_chance_to_conditional_writes_only(scene):
    scene.proxy.let_chance(Chance(3, 1.0, kinds=(Kind.STATUS_BEFORE,)))
    for _ in range(60):
        scene.send("PUT", "/a", b"")
    assert scene.proxy.faults["status before 409"] == 0
    for _ in range(60):
        scene.send("PUT", "/a", b"", **{"If-None-Match": "*"})
    assert scene.proxy.faults["status before 409"] > 5
