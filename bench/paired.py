"""What the samples of two sides say: a median, how sure it is, and whether a bar is met.

Owns: the arithmetic. Samples come in pairs, one of each side from each round, so that what slows down a whole round
slows both and drops out of their difference and of their ratio.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

COVERAGE = 0.95

Verdict = Literal["within", "over", "unclear"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median and the range that holds the true one in ``COVERAGE`` of all runs."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bar:
    """What one side may take more than the other: a share of it or so many seconds, whichever is larger."""

    share: float
    seconds: float

    def allowance(self, reference_s: float) -> float:
        return max(self.share * reference_s, self.seconds)

    def __str__(self) -> str:
        return f"{self.share:.0%} or {self.seconds * 1e6:.0f} µs"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One side against the other, as seconds a call more and as a ratio."""

    difference_s: Estimate
    ratio: Estimate


def estimate(values: Sequence[float]) -> Estimate:
    """The median, with an interval between two of the sorted values that asks nothing of their distribution.

    The k-th smallest and the k-th largest of n values hold the median between them unless fewer than k of the n fall
    on one side of it, which has the chance of fewer than k heads in n throws of a coin. Fewer than 6 values cannot give
    95 %: then it is the smallest and the largest. (The interval of the sign test.)
    """
    ordered = sorted(values)
    rank = _rank(len(ordered))
    return Estimate(median(ordered), ordered[rank - 1], ordered[-rank])


def _rank(count: int) -> int:
    """The greatest k that still covers; at least 1."""
    rank, outside = 0, 0.0
    while True:
        outside += 2 * math.comb(count, rank) / 2**count
        if outside > 1 - COVERAGE:
            return max(rank, 1)
        rank += 1


def compare(side: Sequence[float], reference: Sequence[float]) -> Comparison:
    """``side`` and ``reference`` are seconds a call, the n-th of both from the n-th round."""
    pairs = list(zip(side, reference, strict=True))
    return Comparison(
        difference_s=estimate([ours - theirs for ours, theirs in pairs]),
        ratio=estimate([ours / theirs for ours, theirs in pairs]),
    )


def verdict(side: Sequence[float], reference: Sequence[float], bar: Bar) -> Verdict:
    """``within`` or ``over`` only where the whole interval says so."""
    beyond = estimate([ours - theirs - bar.allowance(theirs) for ours, theirs in zip(side, reference, strict=True)])
    if beyond.high <= 0:
        return "within"
    return "over" if beyond.low > 0 else "unclear"
