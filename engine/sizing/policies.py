"""Policies of sizing: ``balanced_files``, the default, and ``hudi_files``.

Balanced: the fewest files that the budget allows, then the fewest bytes rewritten, then no runts. A file of s bytes has
room for max - s: the smallest is at once the cheapest to fill and the roomiest, its gap over its size the greatest. So
of any number of fills those of the smallest files rewrite the least and take the most. The room that updates leave in
their files costs nothing: these are rewritten anyway.

Hudi: the partitioner of Apache Hudi's copy-on-write inserts, to the number (UpsertPartitioner, release 1.0). In counts
of rows, with one guess of a row's size for all partitions: updates are assigned to their files, then small files are
filled in their order, whatever that rewrites and whatever updates add to them. The remaining rows are assigned to new
files of equal counts, the last of which takes the remainder.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, zip_longest

from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.bins import Bin, divided
from tallymark.engine.sizing.evidence import FOOTER_BYTES
from tallymark.engine.sizing.fills import Fill, fills_within_budget, stretched_bytes
from tallymark.engine.sizing.plan import PlannedFile, check_new_files
from tallymark.engine.sizing.profile import FileUpdates, IncomingRows
from tallymark.engine.timeline.entry import DataFile


def balanced_files(
    incoming: IncomingRows,
    bytes_: int,
    small: Iterable[DataFile],
    settings: SizingSettings,
    updated: Sequence[Fill] = (),
) -> Iterator[PlannedFile]:
    """Yield the files of one partition, whose incoming rows are expected to take that many bytes, without footers."""
    if not incoming.rows:
        yield from (PlannedFile(incoming.partition, 0, fill.bin.has, fill.file, fill.updates) for fill in updated)
        return
    new = _new_bin(incoming.rows, bytes_, settings)
    unhoused = bytes_ - _room(fill.bin for fill in updated)
    fills = fills_within_budget(small, bytes_, unhoused, settings)
    new_count = max(0, _ceiling(unhoused - _room(fill.bin for fill in fills), new.room))
    check_new_files(incoming.partition, incoming.rows, new_count)
    fills = [*updated, *_enough(fills, unhoused - new_count * new.room)]
    bins: Sequence[Bin] = [*(fill.bin for fill in fills), *[new] * new_count]
    if new_count:
        bins = _without_tiny(bins, bytes_)
    sizes = divided(bins, bytes_, small=settings.small_file_bytes)
    counts = _shared(incoming.rows, [size - each.has for size, each in zip(sizes, bins, strict=True)])
    for fill, rows, size in zip_longest(fills, counts, sizes):
        if fill is None and rows:
            yield PlannedFile(incoming.partition, rows, size)
        elif fill is not None and (rows or fill.updates):
            yield PlannedFile(incoming.partition, rows, size if rows else fill.bin.has, fill.file, fill.updates)


def _room(bins: Iterable[Bin]) -> int:
    return sum(each.room for each in bins)


def _without_tiny(bins: Sequence[Bin], bytes_: int) -> Sequence[Bin]:
    """Return the bins without the last, new one where all that others leave for it is tiny, and these can take it."""
    *others, new = bins
    rest = bytes_ - _room(others)
    if rest <= min(new.stretched - new.most, sum(each.stretched - each.most for each in others)):
        return [replace(each, most=each.stretched) for each in others]
    return bins


def _new_bin(rows: int, bytes_: int, settings: SizingSettings) -> Bin:
    """Return a new bin, not larger than a file may be, unless for a single row, which cannot be split."""
    footer = min(FOOTER_BYTES, settings.max_file_bytes // 100)
    most, of_one_row = settings.max_file_bytes, footer + _ceiling(bytes_, rows)
    stretched = stretched_bytes(most)
    if settings.insert_split_rows != "auto":
        most = stretched = min(most, footer + _ceiling(settings.insert_split_rows * bytes_, rows))
    if of_one_row > most:
        most = stretched = of_one_row
    return Bin(has=footer, least=0, most=most, stretched=stretched)


def _enough(fills: Sequence[Fill], bytes_: int) -> list[Fill]:
    """Return the first fills that have room for these bytes."""
    chosen: list[Fill] = []
    for fill in fills:
        if bytes_ <= 0:
            break
        chosen.append(fill)
        bytes_ -= fill.bin.room
    return chosen


def _shared(rows: int, sizes: Sequence[int]) -> list[int]:
    """Divide the rows in proportion to the sizes."""
    total = sum(sizes)
    ends = [rows * end // total for end in accumulate(sizes)]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def _ceiling(number: int, divisor: int) -> int:
    return -(-number // divisor)


def hudi_files(
    partition: str,
    rows: int,
    small: Iterable[DataFile],
    updates: Sequence[FileUpdates] = (),
    *,
    record_bytes: int,
    settings: SizingSettings,
) -> Iterator[PlannedFile]:
    """Yield the files of one partition. ``small`` are those that may be filled, in the order of filling."""
    updated = {each.file.path: each.rows for each in updates}
    buckets = {each.file.path: (each.file, 0) for each in updates}
    for file in small:
        if not rows:
            break
        count = min((settings.max_file_bytes - file.bytes) // record_bytes, rows)
        if count > 0:
            buckets[file.path] = (file, count)
            rows -= count
    for path, (file, count) in buckets.items():
        yield PlannedFile(partition, count, file.bytes + count * record_bytes, file, updated.get(path, 0))
    split_rows = _split_rows(record_bytes, settings)
    check_new_files(partition, rows, rows // split_rows)
    for split in _splits(rows, split_rows):
        yield PlannedFile(partition, split, split * record_bytes)


def _split_rows(record_bytes: int, settings: SizingSettings) -> int:
    if settings.insert_split_rows != "auto":
        return settings.insert_split_rows
    return -(-settings.max_file_bytes // record_bytes)


def _splits(rows: int, split_rows: int) -> Sequence[int]:
    full, rest = divmod(rows, split_rows)
    return [split_rows] * full + [rest] * (rest > 0)
