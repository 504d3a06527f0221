"""How samples are taken: every round measures each side once, in turn, so that drift of the machine hits all alike."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

ROUNDS_MIN = 6
"""The fewest that give an interval of 95 %."""


class Side(Protocol):
    """One way of doing the same thing."""

    @property
    def name(self) -> str: ...

    async def sample(self, call_count: int) -> float:
        """The seconds that so many calls took. What prepares them and tidies up after them is not counted."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    round_count: int = 21
    """Enough for an interval between the 6th smallest and the 6th largest sample."""
    case_s: float = 2.0
    """What one row may take, all its sides and rounds together, as far as ``ROUNDS_MIN`` rounds allow."""

    def __str__(self) -> str:
        return (
            f"A sample is the mean of as many calls as fit into its time; {self.round_count} rounds "
            f"({ROUNDS_MIN} where calls are slow), each with one sample of every side, beginning with another side "
            "each time; warmed up before. Shown are medians over the rounds. Differences and ratios are taken within a "
            "round, with the interval that holds their median with 95 % (order statistics)."
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
        for side in _rotated(sides, number):
            taken[side.name].append(await side.sample(call_count) / call_count)
    return Samples(call_count, {name: tuple(times) for name, times in taken.items()})


async def _warm_up(sides: Sequence[Side], method: Method, step: int, call_count_max: int) -> int:
    """As many calls as the slowest side does in its share of the time; half of that goes into what is not timed."""
    call_s = [await side.sample(step) / step for side in sides]
    sample_s = method.case_s / method.round_count / len(sides) / 2
    wanted = int(sample_s / max(*call_s, 1e-9))
    return max(min(wanted, call_count_max) // step * step, step)


def _rotated(sides: Sequence[Side], number: int) -> Sequence[Side]:
    first = number % len(sides)
    return [*sides[first:], *sides[:first]]
