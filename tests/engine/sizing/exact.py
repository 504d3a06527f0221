"""What cannot be done better, found by trying everything."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations

from tallymark import SizingSettings
from tallymark.engine.sizing.fills import least_bytes
from tallymark.engine.timeline.entry import DataFile


def fewest_files(
    small: Sequence[DataFile],
    bytes_: int,
    new_room: int,
    settings: SizingSettings,
    *,
    updated: Sequence[int] = (),
    tiny: int = 0,
) -> tuple[int, int]:
    """New files, and of what makes as few, the fewest bytes rewritten: all sets of fills are tried.

    ``updated`` are the sizes of files that are rewritten in any case. The best files may be larger than the maximum by
    ``tiny``, where the last new one then has nothing to take.
    """
    most = settings.max_file_bytes
    free_room = sum(max(0, most - size) for size in updated)
    new, rewritten, room, filled = min(
        (max(0, -(-(bytes_ - free_room - room) // new_room)), sum(file.bytes for file in fills), room, len(fills))
        for fills, least, room in _sets(small, settings)
        if least <= bytes_
    )
    rest = bytes_ - free_room - room - (new - 1) * new_room
    stretch = (filled + new - 1) * tiny + sum(max(0, most + tiny - max(most, size)) for size in updated)
    return new - (new > 0 and rest <= min(tiny, stretch)), rewritten


def _sets(small: Sequence[DataFile], settings: SizingSettings) -> Iterator[tuple[tuple[DataFile, ...], int, int]]:
    """Sets of files that may be filled, the least that they may be given, and the most."""
    may = {}
    for file in small:
        least = least_bytes(file, settings.rewrite_budget)
        if least is not None and least <= settings.max_file_bytes - file.bytes:
            may[file] = least
    for count in range(len(may) + 1):
        for fills in combinations(may, count):
            yield fills, sum(may[file] for file in fills), sum(settings.max_file_bytes - file.bytes for file in fills)


@cache
def least_rewritten(appends: int, files: int) -> int:
    """Appends rewritten, so that this many equal appends leave so many files: each append fills one, or begins one.

    A file of m appends has rewritten 1 + 2 + ... + (m - 1) of them.
    """
    if files == 1:
        return appends * (appends - 1) // 2
    return min(
        least_rewritten(appends - last, files - 1) + last * (last - 1) // 2 for last in range(1, appends - files + 2)
    )


def frontier(appends: int, partitions: int, files_max: int) -> list[tuple[int, float]]:
    """Of equal appends to each partition: files of the table, and the least bytes rewritten for each byte inserted.

    Another file is worth the less, the more files a partition has, so the best share files evenly.
    """
    points = []
    for files in range(partitions, files_max + 1):
        each, more = divmod(files, partitions)
        rewritten = (partitions - more) * least_rewritten(appends, each)
        rewritten += more * least_rewritten(appends, each + 1) if more else 0
        points.append((files, rewritten / (appends * partitions)))
    return points
