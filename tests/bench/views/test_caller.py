import pytest

from tallymark.bench.views import caller
from tallymark.bench.views.caller import WrongAnswer, ask_in_turn, ask_on_schedule
from tallymark.bench.views.question import Question

QUESTION = Question("p=1", None, 3)


class Clock:
    """That of the program, and of a door whose answers take as long as they are told to."""

    def __init__(self, *answers_s: float, files: int = 3) -> None:
        self.now_s = 100.0
        self._answers_s = iter(answers_s)
        self._files = files

    def now(self) -> float:
        return self.now_s

    def rest(self, seconds: float) -> None:
        self.now_s += seconds

    def ask(self, _question: Question) -> int:
        self.now_s += next(self._answers_s)
        return self._files

    def count(self, answer: int) -> int:
        return answer


@pytest.fixture
def at(monkeypatch):
    def put(clock):
        monkeypatch.setattr(caller, "now", clock.now)
        monkeypatch.setattr(caller, "rest", clock.rest)
        return clock

    return put


def test_a_late_answer_makes_those_after_it_late_too(at):
    door = at(Clock(0.5, 0.125, 0.125))
    found = ask_on_schedule(door, [QUESTION] * 3, [1.0, 1.25, 2.0], 100.0, warm_up_s=0.0)
    assert found.latency_s == [0.5, 0.375, 0.125]
    assert found.late_s == [0.0, 0.25, 0.0]


def test_what_was_due_in_the_warm_up_is_asked_and_not_counted(at):
    door = at(Clock(0.25, 0.125))
    found = ask_on_schedule(door, [QUESTION] * 2, [0.5, 2.0], 100.0, warm_up_s=1.0)
    assert found.latency_s == [0.125]


def test_one_caller_asks_in_turn_until_its_time_is_over(at):
    door = at(Clock(0.5, 0.25, 0.25, 0.25, 0.25))
    found = ask_in_turn(door, [QUESTION] * 9, seconds=0.5, warm_up=1)
    assert found.latency_s == [0.25] * 3


def test_an_answer_that_leaves_files_out_ends_the_measurement(at):
    door = at(Clock(0.5, files=2))
    with pytest.raises(WrongAnswer, match="was answered with 2 files"):
        ask_on_schedule(door, [QUESTION], [1.0], 100.0, warm_up_s=0.0)
