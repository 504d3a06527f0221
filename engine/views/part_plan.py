"""Layout of a checkpoint: which partitions share a part, and which parts of the previous one are reused. Pure.

A part is reused where none of its partitions has changed, and none of its rows has become invisible. The partitions of
all others are divided again, into parts of about ``PART_BYTES``.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest

from tallymark.engine.views.checkpoint_format import Part

PART_BYTES = 512 * 1024
"""Size of rows: 4,600 files, 100 kB compressed. A query for a partition costs one request of about 30 ms, whose bytes
take no longer; a table of a million files has 220 parts, and an append to one partition rewrites one of them.
"""


@dataclass(frozen=True, slots=True)
class Run:
    """Adjacent partitions that are divided into new parts."""

    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a partition."""

    partition: str
    block: bytes
    oldest_removal: int
    """As in ``Part``."""


def plan_parts(
    partitions: Iterable[str], changed: frozenset[str], parts: Sequence[Part], *, floor: int
) -> list[Part | Run]:
    """Return what to keep and what to write, in the order of partitions. ``changed``: partitions that changed since
    ``parts`` were written.

    New partitions are added to the part before them unless that is full, so that a table to which partitions are added
    one by one has few parts, and not one for each.
    """
    ordered = sorted(partitions)
    plan: list[Part | Run] = []
    start = bisect_left(ordered, parts[0].first) if parts else len(ordered)
    _extend(plan, _only(changed, ordered[:start]))
    for part, following in zip_longest(parts, parts[1:]):
        inside_end = bisect_right(ordered, part.last)
        end = len(ordered) if following is None else bisect_left(ordered, following.first)
        added = _only(changed, ordered[inside_end:end])
        is_stale = 0 < part.oldest_removal <= floor or not changed.isdisjoint(ordered[start:inside_end])
        if is_stale or (added and part.rows_bytes < PART_BYTES):
            _extend(plan, (*ordered[start:inside_end], *added))
        else:
            plan.append(part)
            _extend(plan, added)
        start = end
    return plan


class Cutter:
    """Divides the blocks of a run into parts of about ``PART_BYTES``: at least three quarters of it, unless the run is
    smaller, and at most half as much again, so that a full part remains one when a file is added.
    """

    def __init__(self) -> None:
        self._waiting: list[Rows] = []
        self._size = 0

    def add(self, rows: Rows) -> Iterator[list[Rows]]:
        """Add the next partition of the run; return the parts that are complete now. One without rows is left out."""
        if rows.block:
            self._waiting.append(rows)
            self._size += len(rows.block)
        while 2 * self._size >= 5 * PART_BYTES:
            yield self._first(PART_BYTES)

    def end(self) -> Iterator[list[Rows]]:
        """Yield the rest of the run; then another may start."""
        if 2 * self._size > 3 * PART_BYTES:
            yield self._first(self._size // 2)
        if self._waiting:
            yield self._first(self._size)

    def _first(self, size: int) -> list[Rows]:
        """Return the first part: that many bytes, or one partition more."""
        reached = accumulate(len(rows.block) for rows in self._waiting)
        count = next(count for count, total in enumerate(reached, 1) if total >= size)
        first, self._waiting = self._waiting[:count], self._waiting[count:]
        self._size -= sum(len(rows.block) for rows in first)
        return first


def part_of(parts: Sequence[Part], partition: str) -> Part | None:
    """Return the part that contains a partition, if the partition has any rows."""
    found = bisect_right(parts, partition, key=lambda part: part.first) - 1
    return parts[found] if found >= 0 and partition <= parts[found].last else None


def _only(changed: frozenset[str], partitions: Iterable[str]) -> tuple[str, ...]:
    """Return the changed ones of these partitions: an unchanged one that is in no part has no rows."""
    return tuple(partition for partition in partitions if partition in changed)


def _extend(plan: list[Part | Run], partitions: tuple[str, ...]) -> None:
    if not partitions:
        return
    if plan and isinstance(last := plan[-1], Run):
        plan[-1] = Run(last.partitions + partitions)
    else:
        plan.append(Run(partitions))
