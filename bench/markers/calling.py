"""When a connection asks, and how long its answers took from when they were due. Told the time; no I/O."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

NextDue = Callable[[float], float | None]
"""Given that the connection has become free now: when its next question is due, or None where there is none."""


def open_loop(dues: Iterator[float]) -> NextDue:
    """By a schedule that knows nothing of the answers: a late one makes those after it late, too, and each is counted
    from when it was due (coordinated omission is corrected).
    """
    return lambda _now: next(dues, None)


def closed_loop(*, until: float) -> NextDue:
    """As soon as the answer before is there."""
    return lambda now: now if now < until else None


def so_many(left: int) -> NextDue:
    """As soon as the answer before is there, as often as that."""
    numbers = iter(range(left))
    return lambda now: None if next(numbers, None) is None else now


@dataclass(slots=True)
class Calling:
    """One connection's questions, one in flight at a time."""

    next_due: NextDue
    count_from: float
    """What was due before is a warm-up."""
    due: float | None = None
    is_waiting: bool = False
    latency_s: list[float] = field(default_factory=list)
    answered: int = 0
    """The warm-up's, too."""

    def begin(self, now: float) -> None:
        self.due = self.next_due(now)

    def asked(self) -> None:
        assert self.due is not None
        assert not self.is_waiting, "one at a time"
        self.is_waiting = True

    def heard(self, now: float) -> None:
        assert self.due is not None
        assert self.is_waiting, "somebody answers who was not asked"
        self.is_waiting = False
        self.answered += 1
        if self.due >= self.count_from:
            self.latency_s.append(now - self.due)
        self.due = self.next_due(now)
