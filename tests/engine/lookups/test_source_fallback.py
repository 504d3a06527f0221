"""Look-ups while the service is there, and while it is not: primary and secondary of a view, in Hudi's words."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future

import pytest

from tallymark.backends.errors import Unavailable
from tallymark.engine.errors import (
    Closed,
    CorruptObject,
    InvalidRequest,
    NotAuthenticated,
    RolledBack,
    Sealed,
    ServiceOverloaded,
    ServiceUnavailable,
)
from tallymark.engine.lookups.source import FallbackBlocks
from tallymark.engine.rpc.circuit_breaker import Outage

PAUSE_S = 30.0


class Source:
    """Answers with blocks that tell who made them, or as it is told."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.error: Exception | None = None
        self.is_silent = False
        self.asked: list[Sequence[str]] = []
        self.pending: list[Future[dict[str, bytes]]] = []

    def __call__(self, partitions: Sequence[str]) -> Future[dict[str, bytes]]:
        self.asked.append(partitions)
        answer: Future[dict[str, bytes]] = Future()
        self.pending.append(answer)
        if self.error is not None:
            answer.set_exception(self.error)
        elif not self.is_silent:
            answer.set_result({partition: f"{self.name} of {partition}".encode() for partition in partitions})
        return answer


class Scene:
    """A service, a log and the clock by which one is fallen back from."""

    def __init__(self, *, has_service: bool = True, error: Exception | None = None) -> None:
        """``error``: what the service says instead of an answer."""
        self.service, self.log, self.now = Source("service"), Source("log"), 0.0
        self.service.error = error
        self.blocks = FallbackBlocks(
            self.service if has_service else None,
            self.log,
            instant="20261121020304005",
            wait_s=0.01,
            log_wait_s=0.01,
            pause_s=PAUSE_S,
            monotonic=lambda: self.now,
        )

    def ask(self) -> str:
        return self.blocks.blocks(["a"])["a"].decode()


UNREACHED = (
    ServiceUnavailable("nobody there"),
    ServiceOverloaded("no room"),
    NotAuthenticated("the task runs tallymark 0.1 (protocol 1), the driver 0.1 (protocol 2)"),
    InvalidRequest("position 7 is one of another log"),
)


def test_while_the_service_answers_the_log_is_never_read():
    scene = Scene()
    assert [scene.ask() for _ in range(3)] == ["service of a"] * 3
    assert scene.log.asked == []
    assert scene.blocks.uses_service


@pytest.mark.parametrize("error", [*UNREACHED, None], ids=lambda error: type(error).__name__)
def test_what_the_service_does_not_answer_in_time_the_log_does_and_nobody_waits_for_it_again(error, caplog):
    scene = Scene(error=error)
    scene.service.is_silent = error is None
    assert [scene.ask() for _ in range(3)] == ["log of a"] * 3
    assert len(scene.service.asked) == 1
    assert not scene.blocks.uses_service
    (told,) = [record for record in caplog.records if record.message.startswith("view.fallback")]
    assert told.levelname == "WARNING"
    assert ("no answer within" if error is None else type(error).__name__) in told.message


def test_where_both_fail_the_error_is_the_log_s():
    scene = Scene(error=ServiceUnavailable("nobody there"))
    for error in (CorruptObject("entry 3 is gone"), Unavailable("storage is dark"), ServiceUnavailable("too often")):
        scene.log.error = error
        with pytest.raises(type(error), match=str(error)):
            scene.ask()
    scene.log.error = None
    assert scene.ask() == "log of a"


def test_once_in_a_pause_the_service_is_tried_beside_the_log_and_taken_back_when_it_answers(caplog):
    caplog.set_level("INFO")
    scene = Scene(error=ServiceUnavailable("nobody there"))
    scene.ask()
    scene.now = PAUSE_S - 1
    scene.ask()
    assert len(scene.service.asked) == 1
    scene.now = PAUSE_S
    scene.service.error, scene.service.is_silent = None, True
    assert scene.ask() == "log of a"
    assert scene.ask() == "log of a"
    assert len(scene.service.asked) == 2
    scene.service.pending[-1].set_result({"a": b""})
    scene.service.is_silent = False
    assert scene.ask() == "service of a"
    assert len([record for record in caplog.records if record.message.startswith("view.returned")]) == 1
    assert scene.blocks.counts.fallbacks == 1


def test_a_try_that_fails_leaves_everything_to_the_log():
    scene = Scene(error=ServiceUnavailable("nobody there"))
    scene.ask()
    for number in range(1, 4):
        scene.now = number * PAUSE_S
        assert [scene.ask(), scene.ask()] == ["log of a"] * 2
        assert len(scene.service.asked) == number + 1


@pytest.mark.parametrize("kind", [Sealed, RolledBack, Closed])
def test_the_end_of_the_job_is_told_and_is_no_reason_to_read_the_log(kind: Callable[[str], Exception]):
    scene = Scene(error=kind("the job has ended"))
    with pytest.raises((Sealed, RolledBack, Closed), match="the job has ended"):
        scene.ask()
    assert scene.log.asked == []


def test_without_a_service_the_log_is_asked_without_an_outage_and_given_up_if_it_does_not_answer(caplog):
    scene = Scene(has_service=False)
    assert scene.ask() == "log of a"
    assert (scene.blocks.counts.by_log, scene.blocks.counts.fallbacks, caplog.records) == (1, 0, [])
    scene.log.is_silent = True
    with pytest.raises(ServiceUnavailable, match="no answer"):
        scene.ask()


def test_a_service_that_is_missed_again_is_left_alone_for_a_whole_pause():
    outage = Outage()
    outage.begin(100.0, pause_s=30)
    outage.begin(120.0, pause_s=30)
    assert not outage.is_try_due(149.9, pause_s=30)
    assert outage.is_try_due(150.0, pause_s=30)
