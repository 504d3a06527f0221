"""The default policy: the fewest files that the budget allows, then the fewest bytes rewritten, then no runts.

A file of s bytes has room for max - s: the smallest file is the cheapest to fill and has the most room, so its room per
byte rewritten is the greatest. So of any number of fills those of the smallest files rewrite the least and take the
most. The room that updates leave in their files costs nothing: these are rewritten anyway.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.bins import Bin, divided
from tallymark.engine.sizing.evidence import FOOTER_BYTES
from tallymark.engine.sizing.fills import Fill, fills_within_budget
from tallymark.engine.sizing.plan import PlannedFile, check_new_files
from tallymark.engine.sizing.profile import IncomingRows
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
    unhoused = bytes_ - _room(updated)
    fills = fills_within_budget(small, bytes_, unhoused, settings)
    new_count = max(0, _ceiling(unhoused - _room(fills), new.room))
    check_new_files(incoming.partition, incoming.rows, new_count)
    fills = [*updated, *_enough(fills, unhoused - new_count * new.room)]
    bins = [*(fill.bin for fill in fills), *[new] * new_count]
    sizes = divided(bins, bytes_, small=settings.small_file_bytes)
    counts = _shared(incoming.rows, [size - each.has for size, each in zip(sizes, bins, strict=True)])
    for fill, rows, size in zip([*fills, *[None] * new_count], counts, sizes, strict=True):
        if fill is None and rows:
            yield PlannedFile(incoming.partition, rows, size)
        elif fill is not None and (rows or fill.updates):
            yield PlannedFile(incoming.partition, rows, size if rows else fill.bin.has, fill.file, fill.updates)


def _room(fills: Iterable[Fill]) -> int:
    return sum(fill.bin.room for fill in fills)


def _new_bin(rows: int, bytes_: int, settings: SizingSettings) -> Bin:
    """Return a new bin, not larger than a file may be, unless for a single row, which cannot be split."""
    footer = min(FOOTER_BYTES, settings.max_file_bytes // 100)
    most = settings.max_file_bytes
    if settings.insert_split_rows != "auto":
        most = min(most, footer + _ceiling(settings.insert_split_rows * bytes_, rows))
    return Bin(has=footer, least=0, most=max(most, footer + _ceiling(bytes_, rows)))


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
