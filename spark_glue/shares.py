"""Weighted choice by a number, in constant time.

The alias method, as by A. J. Walker (1977) and M. D. Vose (1991), in whole numbers: exact, and the same everywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Slot:
    """Each slot is drawn equally often. Of ``total`` numbers, those below ``share`` choose ``own``, the rest
    ``other``.
    """

    share: int
    own: int
    other: int


def slots_of(weights: Sequence[int]) -> list[Slot]:
    """Return as many slots as weights, which are all more than 0 and whose sum is the ``total``; ``own`` and ``other``
    are indexes of weights.

    With a slot drawn at random, and a number below the total drawn at random, index n has the chance weights[n] /
    total.
    """
    total, count = sum(weights), len(weights)
    left = [weight * count for weight in weights]
    small = [place for place in range(count) if left[place] < total]
    large = [place for place in range(count) if left[place] >= total]
    slots = [Slot(total, place, place) for place in range(count)]
    while small:
        place, giver = small.pop(), large[-1]
        slots[place] = Slot(left[place], place, giver)
        left[giver] -= total - left[place]
        if left[giver] < total:
            small.append(large.pop())
    return slots
