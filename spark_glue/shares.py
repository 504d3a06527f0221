"""Choosing one of several by a number, each as often as its weight says, in a time that does not grow with them.

The alias method, as by A. J. Walker (1977) and M. D. Vose (1991), in whole numbers: exact, and the same everywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Slot:
    """Drawn as often as any other. Of ``total`` numbers, those below ``share`` choose ``own``, the rest ``other``."""

    share: int
    own: int
    other: int


def slots_of(weights: Sequence[int]) -> list[Slot]:
    """As many slots as weights, all more than 0, whose sum is the ``total``; ``own`` and ``other`` are their places.

    By a slot drawn at random, and a number below the total drawn at random, place n comes up weights[n] / total times.
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
