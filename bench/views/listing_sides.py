"""No view at all: who wants to know what a partition holds lists it, on a local disk or on a store that is far away."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tallymark.bench.loopback import server
from tallymark.bench.loopback.objects import BUCKET
from tallymark.bench.views.door import Address, open_door
from tallymark.bench.views.ground import Ground
from tallymark.bench.views.load import alone, open_loop
from tallymark.bench.views.question import Question
from tallymark.bench.views.side import LookUps, Opening

LATENCY_S = 0.03
"""Of a store that is far away."""

WHOLE = Question("", None, 0)
"""The listing of everything."""

now = time.perf_counter


@dataclass(frozen=True, slots=True)
class DiskSide:
    ground: Ground
    name = "disk"
    title = "listing a local disk"

    @contextmanager
    def opened(self) -> Iterator[tuple["_OpenListing", Opening]]:
        if not self.ground.has_files:
            raise FileNotFoundError("so many empty files are not made")
        address = {"door": "disk", "table": str(self.ground.table)}
        yield _OpenListing(self.ground, address, by_many=True), _opening(self.ground, address)


@dataclass(frozen=True, slots=True)
class S3Side:
    """Its server answers each request by itself, however many come at once."""

    ground: Ground
    name = "s3"
    title = f"listing S3, {LATENCY_S * 1000:.0f} ms a request"

    @contextmanager
    def opened(self) -> Iterator[tuple["_OpenListing", Opening]]:
        held = self.ground.folder / "keys"
        held.write_text("".join(f"table/{path}\n" for path in self.ground.names.read_text().splitlines()))
        with server(LATENCY_S, held=held) as endpoint:
            address = {"door": "s3", "endpoint": endpoint, "prefix": "table", "bucket": BUCKET}
            yield _OpenListing(self.ground, address, by_many=False), _opening(self.ground, address)


def _opening(ground: Ground, address: Address) -> Opening:
    door = open_door(address)
    began = now()
    door.ask(ground.questions[0])
    first_s = now() - began
    found = door.count(door.ask(WHOLE))
    assert found >= ground.shape.files, f"{found} files were listed"
    return Opening(first_s=first_s, ready_s=now() - began - first_s)


@dataclass(frozen=True, slots=True)
class _OpenListing:
    ground: Ground
    address: Address
    by_many: bool
    """Whether it can be asked by the schedule: at 30 ms, 32 connections list a thousand times a second at most."""

    def look_up(self) -> LookUps:
        ground = self.ground
        found = alone(self.address, ground.questions, ground.folder, seconds=ground.effort.alone_s, warm_up=10)
        if not self.by_many:
            return LookUps(alone=found)
        load = open_loop(self.address, ground.questions, ground.effort.schedule, ground.folder)
        return LookUps(alone=found, load=load)

    def follow(self, question: Question) -> None:
        return None
