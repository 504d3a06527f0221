"""Candidates for a fill: the files that may take incoming rows, and the least gain of rewriting one."""

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heapify, heappop
from math import ceil

from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.bins import Bin
from tallymark.engine.sizing.profile import FileUpdates
from tallymark.engine.timeline.entry import DataFile

LEEWAY = 1.05
"""Of the budget. Appends are whole: whether a file takes its last one would else hang on its footer, and files of 5
appends would become files of 4."""

_NO_FILE_HAS = 2.0**60


@dataclass(frozen=True, slots=True)
class Fill:
    file: DataFile
    vessel: Bin
    updates: int = 0
    """Rows of the file that are updated."""


def updated(updates: FileUpdates, bytes_: int, settings: SizingSettings) -> Fill:
    """Of a file that updates are expected to bring to so many bytes: it is rewritten anyway, so its room is free."""
    return Fill(updates.file, Bin(has=bytes_, least=0, most=max(settings.max_file_bytes, bytes_)), updates.rows)


def fills_within_budget(small: Iterable[DataFile], bytes_: int, unhoused: int, settings: SizingSettings) -> list[Fill]:
    """Return the smallest files first, as many as these bytes can pay for, until there is room for those that are
    unhoused.
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
            fills.append(Fill(file, Bin(has=file.bytes, least=least, most=settings.max_file_bytes)))
            unpaid -= least
            unhoused -= room
    return fills


def least_bytes(file: DataFile, budget: float) -> int | None:
    """Return the rows that a fill has to insert for its rewriting to be within the budget; None: however many would not
    do.

    All that was rewritten to make the file, and itself once more, is at most ``budget`` times what it will have. Files
    of equal appends come to 2 x budget + 1 of them by this, the last of which rewrites 2 x budget times what it
    inserts. More than that no file is asked for that was written in one go: it has saved a budget with every byte,
    which a few drops would use up to no effect.
    """
    if not budget:
        return None
    within = budget * LEEWAY
    over_its_life = _ceil((file.rewritten_bytes + file.bytes) / within) - file.bytes
    at_once = 0 if file.rewritten_bytes else _ceil(file.bytes / (2 * within))
    return max(1, over_its_life, at_once)


def _ceil(number: float) -> int:
    return ceil(min(number, _NO_FILE_HAS))  # a tiny budget requires more than a number can express
