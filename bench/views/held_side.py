"""A view that a process of its own holds: ours, or a Delta log."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tallymark.bench.child import Child, child
from tallymark.bench.views.ground import Ground
from tallymark.bench.views.held import Told
from tallymark.bench.views.latency import Latency
from tallymark.bench.views.question import Question
from tallymark.bench.views.side import Followed, LookUps, Opening, OpenReady, OpenSide

_HOLDER = "tallymark.bench.views.holder"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSide:
    name: str
    title: str
    told: Told
    warm: Told
    """Of a small table."""
    warm_question: Question
    ground: Ground
    is_ready_only: bool = False
    """Once it is ready, it is as another side, which is measured."""

    @contextmanager
    def opened(self) -> Iterator[tuple[OpenSide, Opening]]:
        with child(_HOLDER, self.ground.folder / f"{self.name}.log") as holder:
            holder.ask({"warm": {"view": dict(self.warm), "question": self.warm_question.fields()}})
            question = self.ground.questions[0].fields()
            found = holder.ask({"open": {"view": dict(self.told), "question": question}})
            yield OpenReady() if self.is_ready_only else _OpenHeld(self.ground, holder), Opening(**found)


@dataclass(frozen=True, slots=True)
class _OpenHeld:
    ground: Ground
    holder: Child

    def look_up(self) -> LookUps:
        questions = [question.fields() for question in self.ground.questions]
        found = self.holder.ask({"ask": {"questions": questions, "seconds": self.ground.effort.alone_s}})
        return LookUps(alone=Latency.of(found["latency_s"]))

    def follow(self, question: Question) -> Followed:
        return Followed(**self.holder.ask({"follow": {"question": question.fields()}}))
