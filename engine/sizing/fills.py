"""Candidates for a fill: files that may take incoming rows, and the least rows for which rewriting one is
worthwhile.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heapify, heappop
from math import ceil

from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.bins import Bin
from tallymark.engine.sizing.profile import FileUpdates
from tallymark.engine.timeline.entry import DataFile

LEEWAY = 1.05
"""Tolerance of the budget. Appends are whole: otherwise the footer would decide whether a file takes its last append,
and files of 5 appends would become files of 4.
"""

TINY = 1 / 16
"""Share of the maximum that gets no new file beside others: these take it, and none is planned larger than the maximum
by more than this share. Half of what a writer allows a planned file beyond the maximum (``file_growth.PLANNED_FULL``):
the other half is for rows that take more bytes than estimated.
"""

_NO_FILE_HAS = 2.0**60


@dataclass(frozen=True, slots=True)
class Fill:
    file: DataFile
    bin: Bin
    updates: int = 0
    """Rows of the file that are updated."""


def stretched_bytes(max_file_bytes: int) -> int:
    """Return the maximum size of a file that takes a rest which is too small for a new file."""
    return int(max_file_bytes * (1 + TINY))


def updated(updates: FileUpdates, bytes_: int, settings: SizingSettings) -> Fill:
    """Return the fill of a file that updates are expected to grow to that many bytes: it is rewritten anyway, so its
    room is free.
    """
    bin_ = Bin(
        has=bytes_,
        least=0,
        most=max(settings.max_file_bytes, bytes_),
        stretched=max(stretched_bytes(settings.max_file_bytes), bytes_),
    )
    return Fill(updates.file, bin_, updates.rows)


def fills_within_budget(small: Iterable[DataFile], bytes_: int, unhoused: int, settings: SizingSettings) -> list[Fill]:
    """Return the smallest files first, as many as these bytes allow, until there is room for the rows without a
    file.
    """
    fills: list[Fill] = []
    unpaid = bytes_
    queue = [(file.bytes, file.rewritten_bytes, file.name, file) for file in small]
    heapify(queue)  # few of many are looked at
    while queue and unhoused > 0:
        file = heappop(queue)[-1]
        room = settings.max_file_bytes - file.bytes
        least = least_bytes(file, settings.rewrite_budget)
        if least is not None and least <= min(unpaid, room):
            most = settings.max_file_bytes
            fills.append(Fill(file, Bin(file.bytes, least, most, stretched_bytes(most))))
            unpaid -= least
            unhoused -= room
    return fills


def least_bytes(file: DataFile, budget: float) -> int | None:
    """Return the rows that a fill has to insert for its rewriting to be within the budget; None if no number suffices.

    Everything that was rewritten to make the file, and the file itself once more, is at most ``budget`` times its new
    size. Files of equal appends reach 2 x budget + 1 of them by this rule, the last of which rewrites 2 x budget times
    what it inserts. More than that is required of no file that was written at once: it has saved a budget with every
    byte, which a few small inserts would otherwise use up.
    """
    if not budget:
        return None
    within = budget * LEEWAY
    over_its_life = _ceil((file.rewritten_bytes + file.bytes) / within) - file.bytes
    at_once = 0 if file.rewritten_bytes else _ceil(file.bytes / (2 * within))
    return max(1, over_its_life, at_once)


def _ceil(number: float) -> int:
    return ceil(min(number, _NO_FILE_HAS))  # a tiny budget requires more than a number can express
