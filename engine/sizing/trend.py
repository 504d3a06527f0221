"""Where rates that were observed at several instants are going: their mean, and a drift."""

from collections.abc import Sequence
from dataclasses import dataclass

DRIFT_MAX = 0.25
"""Of the mean, that a drift may add or take off: rates that grow by a tenth with each commit are followed, one odd
commit makes no more of itself."""


@dataclass(frozen=True, slots=True)
class Aged:
    """A rate that was observed so many instants ago."""

    age: int
    weight: float
    rate: float


@dataclass(frozen=True, slots=True)
class Trend:
    weight: float
    mean: float
    variance: float
    drift: float
    """What the next instant is expected to have above the mean."""


def trend(aged: Sequence[Aged]) -> Trend:
    """Of at least one rate of some weight."""
    weight = sum(seen.weight for seen in aged)
    mean = sum(seen.weight * seen.rate for seen in aged) / weight
    variance = sum(seen.weight * (seen.rate - mean) ** 2 for seen in aged) / weight
    return Trend(weight, mean, variance, _drift(aged, weight, mean, variance) if variance else 0.0)


def _drift(aged: Sequence[Aged], weight: float, mean: float, variance: float) -> float:
    """The straight line through the rates goes on, as far as they lie on it; two instants always do, so three count."""
    if aged[-1].age < 2:
        return 0.0
    age = sum(seen.weight * seen.age for seen in aged) / weight
    spread = sum(seen.weight * (seen.age - age) ** 2 for seen in aged) / weight
    together = sum(seen.weight * (seen.age - age) * (seen.rate - mean) for seen in aged) / weight
    determined = together**2 / (spread * variance)
    drift = determined * together / spread * (-1 - age)
    return min(max(drift, -DRIFT_MAX * mean), DRIFT_MAX * mean)
