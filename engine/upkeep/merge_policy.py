"""Which small files of a partition are merged next, so that files are few and each byte is written three times at most.

A file is open while it is below the target and its rows may be written once more: one of a flush (level 0), or one that
was merged once (level 1). ``DataFile.rewritten_bytes`` shows the level, whichever process has written the file.

- Where the open files reach the target, they become one file that is full.
- Otherwise the tiny files of level 0 become one of level 1, once they are as many as the files of level 1, and at least
  ``FAN_IN``. So n flushes leave at most ``open_files_max(n)`` open files.
- At the end, or when a partition is quiet, the rest becomes one file.

Owns: the choice. Pure. Does not own: when partitions are looked at, and which files other writers replace.
"""

from collections.abc import Iterable, Sequence
from math import ceil, sqrt

from tallymark.engine.timeline.entry import DataFile

FAN_IN = 16
"""Least number of tiny files that are merged before the target is reached: one commit in seventeen is a merge."""

TINY = 1 / 64
"""Share of the target up to which a file is tiny. Larger ones wait for the target, which 64 of them reach."""

FULL = 7 / 8
"""Share of the target from which on a file is left as it is: to merge it would save an eighth of a file."""

MERGED_COUNT = 1024
"""Most files that are merged at once, so that their log entry remains small."""


def files_to_merge(files: Iterable[DataFile], *, target_bytes: int, is_quiet: bool = False) -> tuple[DataFile, ...]:
    """Return the files of one partition to be merged into one next, oldest first; none, or two and more.

    ``is_quiet``: no more files are expected soon, and the rest is merged.
    """
    open_files = sorted((file for file in files if is_open(file, target_bytes=target_bytes)), key=_largest_first)
    if sum(file.bytes for file in open_files) >= target_bytes:
        chosen = _reaching(open_files, target_bytes)
    else:
        tiny = [file for file in open_files if not file.rewritten_bytes and file.bytes <= TINY * target_bytes]
        merged_count = sum(file.rewritten_bytes > 0 for file in open_files)
        chosen = tiny if len(tiny) >= max(FAN_IN, merged_count) else open_files if is_quiet else []
    return tuple(sorted(chosen[-MERGED_COUNT:], key=_oldest_first)) if len(chosen) > 1 else ()


def is_open(file: DataFile, *, target_bytes: int) -> bool:
    """Return whether the file is below the target, and its rows were written twice at most."""
    return file.bytes < FULL * target_bytes and file.rewritten_bytes <= file.bytes


def merged_rewritten(files: Iterable[DataFile], sizes: Sequence[int]) -> list[int]:
    """Return ``DataFile.rewritten_bytes`` of the files of these sizes into which the others were merged."""
    before, after = sum(file.rewritten_bytes for file in files), sum(sizes)
    return [size - (-before * size // after) for size in sizes]


def open_files_max(flushes: int) -> int:
    """Return how many open files a partition has at most, which that many flushes added that are in no full file.

    Without those that flushes add while a merge runs.
    """
    return 2 * max(FAN_IN, ceil(sqrt(2 * flushes))) + ceil(1 / TINY)


def _reaching(largest_first: Sequence[DataFile], target_bytes: int) -> Sequence[DataFile]:
    """Return the largest files that reach the target together: the smallest part of what is there may wait."""
    size = 0
    for count, file in enumerate(largest_first, 1):
        size += file.bytes
        if size >= target_bytes:
            return largest_first[:count]
    return largest_first


def _largest_first(file: DataFile) -> tuple[int, str]:
    return -file.bytes, file.name


def _oldest_first(file: DataFile) -> tuple[str, str]:
    return file.name.rpartition("_")[2], file.name
