"""How samples are taken: short ones, many, and every round has one of each side in turn.

What slows the machine down for longer than a round hits all sides alike. What interrupts it for a moment, a tick of the
scheduler or another process, spoils a few short samples and not the median.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

ROUNDS_MIN = 6
"""The fewest that give an interval of 95 %."""


AnySide = TypeVar("AnySide")


class Side(Protocol):
    """One way of doing the same thing."""

    @property
    def name(self) -> str: ...

    async def sample(self, call_count: int) -> float:
        """The seconds that so many calls took. What prepares them and tidies up after them is not counted."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    round_count: int = 201
    """Rounds at most: the interval then lies between the 87th smallest and the 87th largest sample."""
    case_s: float = 2.0
    """What one row may take, all its sides and rounds together, as far as ``ROUNDS_MIN`` rounds allow."""
    sample_s: float = 0.004
    """About how long one sample of the slowest side is: at least one call. A scheduler's slice, or less."""

    def __str__(self) -> str:
        return (
            f"A sample is the mean of the calls that fit into {self.sample_s * 1000:.0f} ms, or of one. A round has "
            "a sample of each side, beginning with another side each time; of rounds there are as many as fit into "
            f"{self.case_s:.1f} s, at least {ROUNDS_MIN} and at most {self.round_count}, after a warm-up. Shown are "
            "medians over the rounds. Differences and ratios are taken within a round, with the interval that holds "
            "their median with 95 % (order statistics)."
        )


@dataclass(frozen=True, slots=True)
class Samples:
    """What came out: for each side the seconds a call took, one mean a round."""

    call_count: int
    """Calls in each sample."""
    per_call_s: dict[str, tuple[float, ...]]


async def take_samples(
    sides: Sequence[Side],
    method: Method,
    *,
    call_count_max: int,
    step: int = 1,
    now: Callable[[], float] = time.perf_counter,
) -> Samples:
    """Warm up, choose how many calls a sample has (a multiple of ``step``), then go round by round."""
    began = now()
    call_count = await _warm_up(sides, method, step, call_count_max)
    taken: dict[str, list[float]] = {side.name: [] for side in sides}
    for number in range(method.round_count):
        if number >= ROUNDS_MIN and now() - began > method.case_s:
            break
        for side in rotated(sides, number):
            taken[side.name].append(await side.sample(call_count) / call_count)
    return Samples(call_count, {name: tuple(times) for name, times in taken.items()})


async def _warm_up(sides: Sequence[Side], method: Method, step: int, call_count_max: int) -> int:
    """As many calls as the slowest side does in the time of a sample. The first of each side connects and imports."""
    for side in sides:
        await side.sample(step)
    call_s = [await side.sample(step) / step for side in sides]
    wanted = int(method.sample_s / max(*call_s, 1e-9))
    return max(min(wanted, call_count_max) // step * step, step)


def rotated(sides: Sequence[AnySide], number: int) -> Sequence[AnySide]:
    """The sides in the order of this round."""
    first = number % len(sides)
    return [*sides[first:], *sides[:first]]
