"""Division of bytes among files, with as few small files as possible."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bin:
    """A file to be, and what may come to it, in bytes."""

    has: int
    """Already; of a new file, its footer."""
    least: int
    """That is to come to it."""
    most: int
    """That it may have in the end."""

    @property
    def floor(self) -> int:
        return self.has + self.least

    @property
    def room(self) -> int:
        return self.most - self.has


def divided(bins: Sequence[Bin], bytes_: int, *, small: int) -> list[int]:
    """Return the sizes that the files come to; they take ``bytes_``, for which there is room.

    Where none need stay below ``small``, they come as near to one size as they can. Else the first are filled up, and
    one has the rest.
    """
    total = bytes_ + sum(vessel.has for vessel in bins)
    if sum(max(vessel.floor, min(small, vessel.most)) for vessel in bins) <= total:
        return _levelled(bins, total)
    return _filled_in_order(bins, total)


def _levelled(bins: Sequence[Bin], total: int) -> list[int]:
    """Return the lowest as high as can be."""
    low, high = total // len(bins), max(vessel.most for vessel in bins)
    if not all(vessel.floor <= low <= vessel.most for vessel in bins):
        low = 0
        while low < high:  # the highest level that the bytes suffice for
            level = (low + high + 1) // 2
            low, high = (level, high) if sum(_at(level, bins)) <= total else (low, level - 1)
    return _topped_up(_at(low, bins), bins, total)


def _at(level: int, bins: Sequence[Bin]) -> list[int]:
    return [min(max(vessel.floor, level), vessel.most) for vessel in bins]


def _filled_in_order(bins: Sequence[Bin], total: int) -> list[int]:
    return _topped_up([vessel.floor for vessel in bins], bins, total)


def _topped_up(sizes: list[int], bins: Sequence[Bin], total: int) -> list[int]:
    """Return what the sizes lack to the total goes to the first that has room, and so on."""
    left = total - sum(sizes)
    for place, vessel in enumerate(bins):
        given = min(left, vessel.most - sizes[place])
        sizes[place] += given
        left -= given
    return sizes
