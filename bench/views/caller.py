"""The process of some callers: opens its connections, and asks by the schedule, or one thing after the other.

One line of JSON comes in and says what to do; one goes out when all is open; one comes in with the moment to begin at,
by the machine's monotonic clock; one goes out with the samples.
"""

import gc
import json
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from random import Random
from typing import Any, TextIO

from tallymark.bench.views.door import Door, open_door
from tallymark.bench.views.question import Question
from tallymark.bench.views.schedule import Schedule

now = time.monotonic
"""Of one clock for all processes of the machine."""
rest = time.sleep  # noqa: TID251 nothing ends it early
"""An event's wait takes twice the CPU, which is the service's here."""


class WrongAnswer(Exception):
    """An answer names fewer files than there are."""


@dataclass(slots=True)
class Samples:
    """Of one connection, without the warm-up."""

    latency_s: list[float] = field(default_factory=list)
    """From the moment at which the question was due to the whole answer."""
    late_s: list[float] = field(default_factory=list)
    """From that moment until it was asked: an answer before it was late, or the machine woke the caller late."""


def ask_on_schedule(
    door: Door, asked: Iterable[Question], dues: Iterable[float], began: float, warm_up_s: float
) -> Samples:
    """Each question at its time, or as soon after it as the answer before it is there."""
    found = Samples()
    for question, due in zip(asked, dues, strict=False):
        if (left := began + due - now()) > 0:
            rest(left)
        sent = now()
        answer = door.ask(question)
        done = now()
        _check(door, question, answer)
        if due >= warm_up_s:
            found.latency_s.append(done - began - due)
            found.late_s.append(sent - began - due)
    return found


def ask_in_turn(door: Door, asked: Iterable[Question], seconds: float, warm_up: int) -> Samples:
    """One question after the other by one caller."""
    found, began = Samples(), 0.0
    for number, question in enumerate(asked):
        sent = now()
        if number == warm_up:
            began = sent
        if number > warm_up and sent - began > seconds:
            break
        answer = door.ask(question)
        done = now()
        _check(door, question, answer)
        if number >= warm_up:
            found.latency_s.append(done - sent)
    return found


def _check(door: Door, question: Question, answer: object) -> None:
    if door.count(answer) < question.files:
        raise WrongAnswer(f"{question} was answered with {door.count(answer)} files")


def main(lines: TextIO, answers: TextIO) -> None:
    asked = json.loads(lines.readline())
    questions = [Question(*fields) for fields in asked["questions"]]
    doors = [open_door(asked["address"]) for _ in range(asked.get("connections", 1))]
    _answer(answers, {"open": len(doors)})
    begin = json.loads(lines.readline())["begin"]
    gc.freeze()
    if "schedule" in asked:
        samples = _on_schedule(doors, questions, Schedule(**asked["schedule"]), asked["seed"], begin)
    else:
        samples = [ask_in_turn(doors[0], cycle(questions), asked["seconds"], asked["warm_up"])]
    for door in doors:
        door.close()
    _answer(
        answers,
        {
            "latency_s": [latency for found in samples for latency in found.latency_s],
            "late_s": [late for found in samples for late in found.late_s],
        },
    )


def _on_schedule(
    doors: Sequence[Door], questions: Sequence[Question], schedule: Schedule, seed: int, begin: float
) -> list[Samples]:
    """A thread each."""
    found: list[Samples] = []
    failed: list[BaseException] = []

    def call(number: int, door: Door) -> None:
        random = Random(f"{seed}-{number}")  # noqa: S311 no secret
        first = random.randrange(len(questions))
        mine = islice(cycle(questions), first, None)
        try:
            found.append(ask_on_schedule(door, mine, schedule.dues(random), begin, schedule.warm_up_s))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=call, args=each) for each in enumerate(doors)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return found


def _answer(answers: TextIO, fields: dict[str, Any]) -> None:
    answers.write(json.dumps(fields) + "\n")
    answers.flush()


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
