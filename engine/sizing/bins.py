"""Division of bytes among files, with as few small files as possible."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bin:
    """A planned file, and the bytes that it may get."""

    has: int
    """Bytes that it contains already; for a new file, its footer."""
    least: int
    """Minimum of bytes to add."""
    most: int
    """Maximum size."""
    stretched: int
    """Maximum size where a tiny new file would otherwise take the rest; ``most`` or larger."""

    @property
    def floor(self) -> int:
        return self.has + self.least

    @property
    def room(self) -> int:
        return self.most - self.has


def divided(bins: Sequence[Bin], bytes_: int, *, small: int) -> list[int]:
    """Return the final sizes of the bins, which take ``bytes_`` in all and have room for them.

    Where none has to remain below ``small``, sizes are as equal as possible. Otherwise the first bins are filled up,
    and one gets the rest.
    """
    total = bytes_ + sum(each.has for each in bins)
    if sum(max(each.floor, min(small, each.most)) for each in bins) <= total:
        return _levelled(bins, total)
    return _filled_in_order(bins, total)


def _levelled(bins: Sequence[Bin], total: int) -> list[int]:
    """Return sizes whose lowest ones are raised as far as possible."""
    low, high = total // len(bins), max(each.most for each in bins)
    if not all(each.floor <= low <= each.most for each in bins):
        low = 0
        while low < high:  # the highest level that the bytes suffice for
            level = (low + high + 1) // 2
            low, high = (level, high) if sum(_at(level, bins)) <= total else (low, level - 1)
    return _topped_up(_at(low, bins), bins, total)


def _at(level: int, bins: Sequence[Bin]) -> list[int]:
    return [min(max(each.floor, level), each.most) for each in bins]


def _filled_in_order(bins: Sequence[Bin], total: int) -> list[int]:
    return _topped_up([each.floor for each in bins], bins, total)


def _topped_up(sizes: list[int], bins: Sequence[Bin], total: int) -> list[int]:
    """Add what the sizes lack to the total to the first bin with room, and so on. Return the sizes."""
    left = total - sum(sizes)
    for place, each in enumerate(bins):
        given = min(left, each.most - sizes[place])
        sizes[place] += given
        left -= given
    return sizes
