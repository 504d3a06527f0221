"""When a task falls back to its own markers, and when it returns: futures and a clock, no threads."""

import logging
from concurrent.futures import Future

import pytest

from tallymark.engine.errors import (
    Closed,
    FlushFailed,
    InvalidRequest,
    NotAuthenticated,
    RolledBack,
    Sealed,
    ServiceOverloaded,
    ServiceUnavailable,
)
from tallymark.engine.rpc.circuit_breaker import Outage
from tallymark.engine.tasks.marker_sources import FallbackMarkers
from tests.engine.tasks.scene import INSTANT, Markers

NOBODY = ServiceUnavailable("nobody there")


class Scene:
    """A service and direct markers that answer when told, and a clock that stands still until told."""

    def __init__(self, outage: Outage | None = None) -> None:
        self.now = 0.0
        self.service = Markers(acks=False)
        self.direct = Markers(acks=False)
        self.outage = outage or Outage()
        self.source = FallbackMarkers(
            self.service,
            self.direct,
            instant=INSTANT,
            outage=self.outage,
            wait_s=60,
            pause_s=30,
            monotonic=lambda: self.now,
        )

    def fall_back(self) -> None:
        """An outage begins now."""
        self.source.request(["lost"])
        self.service.refuse_all(NOBODY)
        self.direct.ack_all()
        self.service.requests.clear()
        self.direct.requests.clear()


@pytest.fixture
def scene() -> Scene:
    return Scene()


def failed_with(ack: Future[None]) -> BaseException | None:
    assert ack.done()
    return ack.exception()


def test_a_service_that_answers_is_all_there_is_and_what_it_was_asked_cannot_be_cancelled(scene):
    ack = scene.source.request(["a", "b"])
    assert not ack.cancel()
    assert not ack.done()
    scene.service.ack_all()
    assert failed_with(ack) is None
    assert (scene.service.requests, scene.direct.requests) == ([("a", "b")], [])


def test_a_service_that_cannot_be_reached_is_done_without_and_the_other_is_told_the_same(scene):
    ack = scene.source.request(["a", "b"], "MERGE")
    assert scene.service.ios == {"a": "MERGE", "b": "MERGE"}
    scene.service.refuse_all(NOBODY)
    assert not ack.done()
    assert scene.direct.requests == [("a", "b")]
    assert scene.direct.ios == {"a": "MERGE", "b": "MERGE"}
    scene.direct.ack_all()
    assert failed_with(ack) is None


@pytest.mark.parametrize(
    "refusal",
    [Sealed, RolledBack, Closed, InvalidRequest, NotAuthenticated, FlushFailed],
    ids=lambda kind: kind.__name__,
)
def test_what_the_service_refuses_is_not_marked_past_it(scene, refusal):
    ack = scene.source.request(["a"])
    error = refusal("because")
    scene.service.refuse_all(error)
    assert failed_with(ack) is error
    assert scene.direct.requests == []
    assert not scene.outage.is_on


def test_an_overloaded_service_is_asked_again_and_not_passed_by(scene):
    ack = scene.source.request(["a"])
    for now in (20.0, 40.0):
        scene.now = now
        _, answer = scene.service._waiting.pop()
        answer.set_exception(ServiceOverloaded("full"))
        assert not ack.done()
    scene.now = 60.0
    scene.service.refuse_all(ServiceOverloaded("full"))
    assert isinstance(failed_with(ack), ServiceOverloaded)
    assert (scene.service.requests, scene.direct.requests) == ([("a",)] * 3, [])


def test_what_storage_answers_to_the_task_itself_comes_through(scene):
    ack = scene.source.request(["a"])
    scene.service.refuse_all(NOBODY)
    error = Sealed("too late")
    scene.direct.refuse_all(error)
    assert failed_with(ack) is error


def test_direct_markers_that_cannot_even_be_asked_for_do_not_leave_the_task_waiting(scene):
    def request(paths, io="CREATE"):
        raise Closed("over")

    scene.direct.request = request
    ack = scene.source.request(["a"])
    scene.service.refuse_all(NOBODY)
    assert isinstance(failed_with(ack), Closed)


def test_a_put_that_is_cancelled_with_its_loop_is_an_error(scene):
    ack = scene.source.request(["a"])
    scene.service.refuse_all(NOBODY)
    scene.direct._waiting[0][1].cancel()
    assert isinstance(failed_with(ack), Closed)


def test_during_an_outage_the_service_is_tried_once_in_a_pause_and_nobody_waits_for_it(scene):
    scene.fall_back()
    for scene.now in (0.0, 10.0, 29.9):
        scene.source.request(["early"])
    assert (scene.service.requests, len(scene.direct.requests)) == ([], 3)
    scene.now = 30.0
    acks = [scene.source.request([path]) for path in "abc"]
    assert scene.service.requests == [("a",)]
    scene.direct.ack_all()
    assert [failed_with(ack) for ack in acks] == [None] * 3
    scene.service.refuse_all(NOBODY)
    scene.now = 59.9
    scene.source.request(["d"])
    scene.now = 60.0
    scene.source.request(["e"])
    assert scene.service.requests == [("a",), ("e",)]


def test_an_outage_ends_with_the_services_first_ack(scene):
    scene.fall_back()
    scene.now = 30.0
    scene.source.request(["a"])
    scene.service.ack_all()
    assert not scene.outage.is_on
    scene.source.request(["b"])
    assert scene.service.requests == [("a",), ("b",)]
    assert scene.direct.requests == [("a",)]


def test_a_refusal_does_not_end_it(scene):
    """Whether the job is over the task learns from its own markers."""
    scene.fall_back()
    scene.now = 30.0
    scene.source.request(["a"])
    scene.service.refuse_all(NotAuthenticated("a stranger"))
    assert scene.outage.is_on


def test_an_ack_that_was_still_waited_for_ends_it_too(scene):
    early = scene.source.request(["a"])
    other = Scene(scene.outage)
    other.fall_back()
    scene.service.ack_all()
    assert failed_with(early) is None
    assert not scene.outage.is_on


def test_tasks_of_one_process_share_what_they_know(scene):
    scene.fall_back()
    other = Scene(scene.outage)
    other.source.request(["a"])
    assert (other.service.requests, other.direct.requests) == ([], [("a",)])


def test_the_log_tells_of_an_outage_once_and_of_its_end(scene, caplog):
    with caplog.at_level(logging.INFO):
        for path in "ab":
            scene.source.request([path])
        scene.service.refuse_all(NOBODY)
        scene.now = 30.0
        scene.source.request(["c"])
        scene.service.ack_all()
    told = [(record.levelname, record.message) for record in caplog.records]
    assert told == [
        ("WARNING", f'markers.fallback instant={INSTANT} reason="ServiceUnavailable: nobody there"'),
        ("INFO", f"markers.recovered instant={INSTANT}"),
    ]
