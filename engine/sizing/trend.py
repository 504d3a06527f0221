"""Where rates that were observed at several instants are going: their mean, and a drift."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import mul

DRIFT_MAX = 0.25
"""Of the mean, that a drift may add or take off: rates that grow by a tenth with each commit are followed, one odd
commit makes no more of itself."""

OF_TWO = 0.5
"""What two instants count, at most. They always lie on a line, and may do so by chance."""


@dataclass(frozen=True, slots=True)
class Trend:
    weight: float
    mean: float
    variance: float
    drift: float
    """What the next instant is expected to have above the mean."""


def trend(ages: Sequence[int], weights: Sequence[float], rates: Sequence[float], *, of_two: float = 0.0) -> Trend:
    """Of at least one rate, the newest first: ``ages`` tells how many instants ago each was observed.

    ``of_two`` is how far two instants are believed to lie on a line, 0 to 1.
    """
    weight = sum(weights)
    mean = _dot(weights, rates) / weight
    off = [rate - mean for rate in rates]
    weighted = list(map(mul, weights, off))
    variance = _dot(weighted, off) / weight
    if not variance or not ages[-1]:
        return Trend(weight, mean, variance, drift=0.0)
    age = _dot(weights, ages) / weight
    older = [each - age for each in ages]
    spread = _dot(map(mul, weights, older), older) / weight
    together = _dot(weighted, older) / weight
    # The straight line through the rates goes on, as far as they lie on it.
    determined = together**2 / (spread * variance) * (of_two if ages[-1] == 1 else 1.0)
    drift = determined * together / spread * (-1 - age)
    return Trend(weight, mean, variance, min(max(drift, -DRIFT_MAX * mean), DRIFT_MAX * mean))


def believed_of_two(one: float, other: float) -> float:
    """By their weights, each for itself: where one says next to nothing, it does not say where things are going."""
    return OF_TWO * min(one, other) / max(one, other)


def _dot(one: Iterable[float], other: Iterable[float]) -> float:
    total: float = sum(map(mul, one, other))
    return total
