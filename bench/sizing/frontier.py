"""What equal appends to one partition cost at least, by the number of files that they are left in.

An append of size 1 goes to a file: that it begins, or that is written once more for it, with all that lies there. A
file of m appends so costs 0 + 1 + ... + (m - 1) rewritten ones, whatever the order in which files grow, and dividing an
append among files costs more, since all of them are rewritten. As the cost is convex in m, groups as equal as can be
are the cheapest: the curve is exact, for one who knows how many appends come. A planner does not.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    files: int
    """Of one partition."""
    rewritten: float
    """Bytes for each byte inserted."""


def cheapest(appends: int, files: int) -> Point:
    """Fewest bytes rewritten for so many files."""
    each, longer = divmod(appends, files)
    cost = longer * _cost(each + 1) + (files - longer) * _cost(each)
    return Point(files, cost / appends)


def curve(appends: int) -> tuple[Point, ...]:
    """From one file to one for each append."""
    return tuple(cheapest(appends, files) for files in range(1, appends + 1))


def fewest(appends: int, rewritten: float) -> Point:
    """Fewest files for no more bytes."""
    return next(point for point in curve(appends) if point.rewritten <= rewritten)


def _cost(appends: int) -> int:
    return appends * (appends - 1) // 2
