"""The parent's end of callers: start their processes, let them begin together, gather what they measured."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from tallymark.bench.child import child
from tallymark.bench.views.door import Address
from tallymark.bench.views.latency import Latency
from tallymark.bench.views.question import Question
from tallymark.bench.views.schedule import Schedule

_CALLER = "tallymark.bench.views.caller"

HEAD_START_S = 0.2
"""Between the word to begin and the beginning: for all processes to have read it."""

ALONE_S = 3.0
"""How long one caller asks one thing after the other."""

ALONE_WARM_UP = 200
"""Questions before that. A JVM takes thousands to become fast, which the schedule's warm-up holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the callers of a schedule saw."""

    latency: Latency
    late: Latency
    """How long questions waited to be asked; a part of the latency."""
    rate: float
    """Answers a second that there were: fewer than asked for where callers had to wait for each other's."""


def open_loop(address: Address, questions: Sequence[Question], schedule: Schedule, logs: Path, seed: int = 0) -> Load:
    """What many callers see that ask by the schedule. Raises ChildFailed."""
    with ExitStack() as stack:
        callers = [
            stack.enter_context(child(_CALLER, logs / f"caller-{number}.log")) for number in range(schedule.processes)
        ]
        for number, caller in enumerate(callers):
            caller.tell(
                {
                    "address": dict(address),
                    "questions": [question.fields() for question in questions],
                    "connections": schedule.connections_each,
                    "schedule": schedule.document(),
                    "seed": seed * schedule.processes + number,
                }
            )
        for caller in callers:
            caller.answer()
        begin = time.monotonic() + HEAD_START_S
        for caller in callers:
            caller.tell({"begin": begin})
        answers = [caller.answer() for caller in callers]
        took_s = time.monotonic() - begin - schedule.warm_up_s
    latencies = list(chain.from_iterable(answer["latency_s"] for answer in answers))
    return Load(
        latency=Latency.of(latencies),
        late=Latency.of(chain.from_iterable(answer["late_s"] for answer in answers)),
        rate=len(latencies) / max(took_s, schedule.seconds),
    )


def alone(
    address: Address,
    questions: Sequence[Question],
    logs: Path,
    *,
    seconds: float = ALONE_S,
    warm_up: int = ALONE_WARM_UP,
) -> Latency:
    """What one caller sees that asks one thing after the other. Raises ChildFailed."""
    asked = {
        "address": dict(address),
        "questions": [question.fields() for question in questions],
        "seconds": seconds,
        "warm_up": warm_up,
    }
    with child(_CALLER, logs / "caller.log") as caller:
        caller.ask(asked)
        return Latency.of(caller.ask({"begin": 0})["latency_s"])
