"""The view that a job's service answers from: the driver is a process of its own, asked by the client of its tasks."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tallymark.bench.child import child
from tallymark.bench.views.door import Address, open_door
from tallymark.bench.views.ground import Ground
from tallymark.bench.views.held import Told
from tallymark.bench.views.load import alone, open_loop
from tallymark.bench.views.question import Question
from tallymark.bench.views.side import Followed, LookUps, Opening

_SERVER = "tallymark.bench.views.server"

now = time.perf_counter


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedSide:
    name: str
    title: str
    told: Told
    ground: Ground

    @contextmanager
    def opened(self) -> Iterator[tuple["_OpenServed", Opening]]:
        with child(_SERVER, self.ground.folder / f"{self.name}.log") as driver:
            began = now()
            address = {"door": "ours", **driver.ask(self.told)}
            door = open_door(address)
            door.ask(self.ground.questions[0])
            door.close()
            yield _OpenServed(self.ground, address), Opening(first_s=now() - began)


@dataclass(frozen=True, slots=True)
class _OpenServed:
    ground: Ground
    address: Address

    def look_up(self) -> LookUps:
        ground = self.ground
        load = open_loop(self.address, ground.questions, ground.effort.schedule, ground.folder)
        found = alone(self.address, ground.questions, ground.folder, seconds=ground.effort.alone_s)
        return LookUps(alone=found, load=load)

    def follow(self, question: Question) -> Followed:
        """Asked for a position that it has not come to, the service reads the log on."""
        position, log_hash = self.ground.head
        door = open_door({**self.address, "position": position, "log_hash": log_hash})
        began = now()
        answer = door.ask(question)
        answered_s = now() - began
        assert door.count(answer) >= question.files, f"{question} was answered with {door.count(answer)} files"
        door.close()
        return Followed(synced_s=answered_s, answered_s=answered_s)
