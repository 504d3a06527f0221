"""How writes are compared: one of each side in a round, beginning with another side each time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tallymark.bench.method import rotated
from tallymark.bench.writes.hands import SideFailed
from tallymark.bench.writes.order import Done

ROUNDS = 6
"""The fewest that give an interval of 95 %, from the smallest to the largest."""

WARM_UP = 2
"""Rounds before the first that counts: the JVM compiles for several."""


class WriteSide(Protocol):
    @property
    def name(self) -> str: ...

    def write(self, number: int) -> Done:
        """The write of so manieth round; what comes before and after it is not counted."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundMethod:
    rounds: int = ROUNDS
    warm_up: int = WARM_UP
    scale: float = 1.0
    codec: str = "zstd"
    cores: int = 2

    def __str__(self) -> str:
        return (
            f"Each side has a process of its own with a warm Spark session, local[{self.cores}], 1 GiB for the JVM; "
            "all write the same Parquet source from local disk, one write after the other. A round has one of each "
            f"side, beginning with another each time; {self.rounds} rounds, after {self.warm_up} to warm up. Codec "
            f"{self.codec}, level 1, on all sides; scale {self.scale:g}. Wall: from the call to its return. CPU: user "
            "and system seconds of the side's whole process tree (driver, JVM, Python workers, and children that "
            "ended) out of /proc, in steps of 10 ms. Shown are medians; ratios are Tallymark's over the other's, taken "
            "within a round, with the interval that holds their median with 95 % (order statistics; under 6 rounds the "
            "smallest and the largest, which is less sure)."
        )


def take_rounds(
    sides: Sequence[WriteSide],
    method: RoundMethod,
    *,
    done: Callable[[str], None] = lambda name: None,
    lost: Callable[[str, SideFailed], None] = lambda name, error: None,
) -> dict[str, tuple[Done, ...]]:
    """What each write took, by side and in the order of the rounds; ``done`` is called after each.

    A side that fails on the way takes no part any more and is not in the answer; ``lost`` gets the reason.
    """
    taken: dict[str, list[Done]] = {side.name: [] for side in sides}
    for number in range(method.warm_up + method.rounds):
        for side in rotated(sides, number):
            if side.name not in taken:
                continue
            try:
                result = side.write(number)
            except SideFailed as error:
                del taken[side.name]
                lost(side.name, error)
                continue
            if number >= method.warm_up:
                taken[side.name].append(result)
            done(side.name)
    return {name: tuple(results) for name, results in taken.items()}
