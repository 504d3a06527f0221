"""The default policy: the fewest files that the budget allows, then the fewest bytes rewritten, then no runts.

A file of s bytes has room for max - s: the smallest is at once the cheapest to fill and the roomiest. So of any number
of fills, those of the smallest files rewrite the least and take the most, and no search is needed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.division import divided
from tallymark.engine.sizing.plan import PlannedFile
from tallymark.engine.sizing.profile import IncomingRows
from tallymark.engine.timeline.entry import DataFile


@dataclass(frozen=True, slots=True)
class Fill:
    """A small file, and the bytes that may come to it."""

    file: DataFile
    least: int
    """For which its rewriting is within the budget."""
    room: int


def balanced_files(
    incoming: IncomingRows, bytes_: int, small: Iterable[DataFile], settings: SizingSettings
) -> Iterator[PlannedFile]:
    """The files of one partition, whose incoming rows are expected to take so many bytes."""
    fills = fills_within_budget(small, bytes_, settings)
    most = settings.max_file_bytes
    new_count = max(0, -(-(bytes_ - sum(fill.room for fill in fills)) // most))
    chosen = _enough(fills, bytes_ - new_count * most)
    sizes = divided(
        [(fill.file.bytes, fill.least) for fill in chosen] + [(0, 0)] * new_count,
        bytes_,
        small=settings.small_file_bytes,
        most=most,
    )
    into: list[DataFile | None] = [*(fill.file for fill in chosen), *[None] * new_count]
    rows = _shared(incoming.rows, sizes)
    for file, count, added in zip(into, rows, sizes, strict=True):
        if count:
            yield PlannedFile(incoming.partition, count, added + (0 if file is None else file.bytes), fill=file)


def fills_within_budget(small: Iterable[DataFile], bytes_: int, settings: SizingSettings) -> list[Fill]:
    """The smallest first, as many as these bytes can pay for."""
    fills: list[Fill] = []
    for file in sorted(small, key=lambda file: (file.bytes, file.rewritten_bytes, file.name)):
        least = least_bytes(file, settings.rewrite_budget)
        room = settings.max_file_bytes - file.bytes
        if least is not None and least <= min(room, bytes_):
            fills.append(Fill(file, least, room))
            bytes_ -= least
    return fills


def least_bytes(file: DataFile, budget: float) -> int | None:
    """To be inserted into a file for its rewriting to be within the budget, over the file's life; None: however many.

    All that was rewritten to make it, and itself once more, is at most ``budget`` times what it will have.
    """
    if not budget:
        return None if file.bytes else 1
    return max(1, -int(-(file.rewritten_bytes + file.bytes) // budget) - file.bytes)


def _enough(fills: Sequence[Fill], bytes_: int) -> list[Fill]:
    chosen: list[Fill] = []
    for fill in fills:
        if bytes_ <= 0:
            break
        chosen.append(fill)
        bytes_ -= fill.room
    return chosen


def _shared(rows: int, sizes: Sequence[int]) -> list[int]:
    """The rows in proportion to the sizes; they add up."""
    total = sum(sizes)
    ends = [rows * end // total for end in accumulate(sizes)]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]
