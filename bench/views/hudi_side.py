"""Hudi's timeline server."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tallymark.bench.peers.hudi_view import HudiView, names
from tallymark.bench.peers.timeline_server import HUDI as RELEASE
from tallymark.bench.peers.timeline_server import TimelineServer, ViewStorage, timeline_server
from tallymark.bench.views.ground import Ground
from tallymark.bench.views.load import alone, open_loop
from tallymark.bench.views.question import Question
from tallymark.bench.views.side import Followed, LookUps, Opening

HEAP_MB = 4096
"""Enough for all of its views of 100,000 files several times over: none is held back by its collector."""

now = time.perf_counter


@dataclass(frozen=True, slots=True)
class HudiSide:
    ground: Ground
    view: ViewStorage

    @property
    def name(self) -> str:
        return f"hudi-{self.view}"

    @property
    def title(self) -> str:
        return f"Hudi {RELEASE}, {self.view}"

    @contextmanager
    def opened(self) -> Iterator[tuple["_OpenHudi", Opening]]:
        ground = self.ground
        with timeline_server(ground.folder / self.name, view=self.view, heap_mb=HEAP_MB) as server:
            before, began = server.heap_bytes(), now()
            view = HudiView(server.port, ground.table)
            view.files(ground.questions[0].partition)
            first_s = now() - began
            view.load_all()
            ready_s = now() - began
            grown = server.heap_bytes() - before
            try:
                yield _OpenHudi(ground, server, view), Opening(first_s=first_s, ready_s=ready_s, grown_bytes=grown)
            finally:
                view.close()


@dataclass(frozen=True, slots=True)
class _OpenHudi:
    ground: Ground
    server: TimelineServer
    view: HudiView

    def look_up(self) -> LookUps:
        """By many first: a JVM has to be asked for a while before it is fast."""
        ground, address = self.ground, {"door": "hudi", "port": self.server.port, "table": str(self.ground.table)}
        load = open_loop(address, ground.questions, ground.effort.schedule, ground.folder)
        return LookUps(alone=alone(address, ground.questions, ground.folder, seconds=ground.effort.alone_s), load=load)

    def follow(self, question: Question) -> Followed:
        began = now()
        self.view.sync()
        synced_s = now() - began
        answer = self.view.files(question.partition)
        answered_s = now() - began
        assert len(names(answer)) >= question.files, f"{question} was answered with {len(names(answer))} files"
        return Followed(synced_s=synced_s, answered_s=answered_s)
