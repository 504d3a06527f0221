"""The process of some callers with a connection each: one thread, one poll, the same for whoever is asked.

One line of JSON comes in and says what to do; one goes out when all connections are open; one comes in with the moment
to begin at, by the machine's monotonic clock; one goes out with what was seen.
"""

import gc
import heapq
import json
import select
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TextIO

from tallymark.bench.markers.calling import Calling, NextDue, closed_loop, open_loop, so_many
from tallymark.bench.markers.names import paths
from tallymark.bench.markers.talk import READ_BYTES, Talk, open_talk
from tallymark.bench.views.schedule import Schedule

now = time.monotonic
"""Of one clock for all processes of the machine."""

Asked = dict[str, Any]


class HungUp(Exception):
    """The other side closed a connection in which an answer was due."""


@dataclass(slots=True)
class _Line:
    connection: socket.socket
    talk: Talk
    calling: Calling
    names: Iterator[str]
    received_bytes: int = 0

    def ask(self) -> None:
        question = self.talk.question(next(self.names))
        sent = self.connection.send(question)
        assert sent == len(question), "a question fits any socket's buffer that holds no other"
        self.calling.asked()

    def hear(self) -> bool:
        """Whether that was the answer."""
        data = self.connection.recv(READ_BYTES)
        if not data:
            raise HungUp("a connection was closed by the other side")
        self.received_bytes += len(data)
        if not self.talk.hear(data):
            return False
        self.calling.heard(now())
        return True


def call(lines: Sequence[_Line]) -> None:
    """Until no line has anything left to ask."""
    poll = select.epoll()
    by_number = {line.connection.fileno(): line for line in lines}
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    dues: list[tuple[float, int]] = []
    for number, line in by_number.items():
        line.calling.begin(now())
        _push(dues, number, line)
    waiting = 0
    while dues or waiting:
        for number, _ in poll.poll(max(0.0, dues[0][0] - now()) if dues else None):
            if by_number[number].hear():
                waiting -= 1
                _push(dues, number, by_number[number])
        while dues and dues[0][0] <= now():
            by_number[heapq.heappop(dues)[1]].ask()
            waiting += 1


def _push(dues: list[tuple[float, int]], number: int, line: _Line) -> None:
    if line.calling.due is not None:
        heapq.heappush(dues, (line.calling.due, number))


def next_dues(asked: Asked, begin: float, random: Random) -> Iterator[NextDue]:
    """One for each connection of this process: by a schedule, for a time, or as often as it is told."""
    each: int = asked["connections"]
    for number in range(each):
        if "schedule" in asked:
            schedule = Schedule(**asked["schedule"])
            yield open_loop(begin + due for due in schedule.dues(random))
        elif "seconds" in asked:
            yield closed_loop(until=begin + asked["warm_up_s"] + asked["seconds"])
        else:
            yield so_many(asked["count"] // each + (number < asked["count"] % each))


def count_from(asked: Asked, begin: float) -> float:
    warm_up_s: float = asked["schedule"]["warm_up_s"] if "schedule" in asked else asked.get("warm_up_s", 0.0)
    return begin + warm_up_s


def seen(callings: Sequence[Calling], received_bytes: int) -> dict[str, object]:
    return {
        "latency_s": [latency for calling in callings for latency in calling.latency_s],
        "answered": sum(calling.answered for calling in callings),
        "ended": now(),
        "received_bytes": received_bytes,
        "cpu_s": time.process_time(),
    }


def main(lines: TextIO, answers: TextIO) -> None:
    asked: Asked = json.loads(lines.readline())
    address, series = asked["address"], asked["series"]
    talks = [open_talk(address) for _ in range(asked["connections"])]
    answer(answers, {"open": len(talks)})
    begin = json.loads(lines.readline())["begin"]
    gc.freeze()
    random, names = Random(series), paths(address["instant"], series)  # noqa: S311 no secret
    dues = next_dues(asked, begin, random)
    opened = [
        _Line(connection, talk, Calling(next_due, count_from(asked, begin)), names)
        for (connection, talk), next_due in zip(talks, dues, strict=True)
    ]
    threading.Event().wait(max(0.0, begin - now()))
    call(opened)
    answer(answers, seen([line.calling for line in opened], sum(line.received_bytes for line in opened)))


def answer(answers: TextIO, fields: dict[str, Any]) -> None:
    answers.write(json.dumps(fields) + "\n")
    answers.flush()


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
