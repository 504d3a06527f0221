"""Distribution of a table's file sizes, and the number of small files, at one position."""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from tallymark.engine.settings import SizingSettings
from tallymark.engine.timeline.scope import is_below
from tallymark.engine.views.block import LiveSizes
from tallymark.engine.views.view import ViewAt

SMALL_BYTES = SizingSettings().small_file_bytes
"""A file below this size is small: an append fills it by default."""

PARTITION_BYTES = 500
"""What a partition uses in memory beside its sizes."""

SUM_BYTES = 200
"""What its sums use."""


@dataclass(frozen=True, slots=True)
class SizeBucket:
    """Files of at least ``least`` bytes and less than twice as many; ``least`` is a power of two, or 0."""

    least: int
    files: int
    bytes: int

    @property
    def below(self) -> int:
        return 2 * self.least or 1


@dataclass(frozen=True, slots=True)
class PartitionSizes:
    partition: str
    files: int
    bytes: int
    small_files: int
    small_bytes: int
    """Bytes in small files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSizes:
    """The files of a table, or of a part of it, by size."""

    position: int
    """Position of the commit log as of which the files were committed."""
    small_below: int
    """Size in bytes below which a file counts as small."""
    files: int
    rows: int
    bytes: int
    p50: int
    """Median size in bytes, by nearest rank, as is ``p95``; 0 without files."""
    p95: int
    largest: int
    fewest: int
    """Files that the same bytes would fill, partition by partition, at the default ``max_file_bytes``; at most as
    many as there are."""
    rewritten_bytes: int
    """Total size of the files that were rewritten on the way to these."""
    buckets: tuple[SizeBucket, ...]
    """From the smallest file's to the largest's, empty ones in between."""
    partitions: tuple[PartitionSizes, ...]
    """Partitions, those with the most small files first."""

    @classmethod
    def of(cls, files: Mapping[str, LiveSizes], *, position: int, small_below: int = SMALL_BYTES) -> "FileSizes":
        """Return the sizes of the files of these partitions."""
        sizes = sorted(chain.from_iterable(found.sizes for found in files.values()))
        partitions = _partitions(files, small_below)
        return cls(
            position=position,
            small_below=small_below,
            files=len(sizes),
            rows=sum(found.rows for found in files.values()),
            bytes=sum(sizes),
            p50=_nearest_rank(sizes, 0.50),
            p95=_nearest_rank(sizes, 0.95),
            largest=sizes[-1] if sizes else 0,
            fewest=sum(_fewest(found) for found in partitions),
            rewritten_bytes=sum(found.rewritten_bytes for found in files.values()),
            buckets=_buckets(sizes),
            partitions=partitions,
        )

    @property
    def small_files(self) -> int:
        return sum(found.small_files for found in self.partitions)

    @property
    def small_bytes(self) -> int:
        """Bytes in small files."""
        return sum(found.small_bytes for found in self.partitions)

    @property
    def rewritten_per_byte(self) -> float:
        """Bytes rewritten per existing byte: the cost of filling small files."""
        return self.rewritten_bytes / self.bytes if self.bytes else 0.0

    @property
    def small_file_share(self) -> float:
        """Of all files, the small ones; 0 without files."""
        return self.small_files / self.files if self.files else 0.0

    @property
    def small_byte_share(self) -> float:
        """Of all bytes, those in small files."""
        return self.small_bytes / self.bytes if self.bytes else 0.0


class SizeIndex:
    """Sizes of a table's files by partition. Each query reads the partitions that have changed since the last one."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, LiveSizes]] = {}
        self._last: tuple[str, FileSizes] | None = None
        """The last answer, with its prefix."""

    @property
    def memory_bytes(self) -> int:
        """Estimate of what it uses."""
        sums = 0 if self._last is None else SUM_BYTES * len(self._last[1].partitions)
        return sums + sum(PARTITION_BYTES + 8 * len(found.sizes) for _, found in self._known.values())

    async def at(self, view: ViewAt, *, prefix: str = "", small_below: int = SMALL_BYTES) -> FileSizes:
        """Return the sizes at the view's position, below a partition path."""
        if self._last is not None:
            last_prefix, last = self._last
            if (last_prefix, last.position, last.small_below) == (prefix, view.position, small_below):
                return last
        found: dict[str, LiveSizes] = {}
        changes = {each: position for each, position in view.changes().items() if is_below(each, prefix)}
        if any(self._cached(each, position) is None for each, position in changes.items()):
            await view.read(changes)
        for partition, position in changes.items():
            sizes = self._cached(partition, position) if position <= view.position else None
            found[partition] = sizes or await view.sizes(partition)
            if position <= view.position:
                self._known[partition] = position, found[partition]
        sums = FileSizes.of(found, position=view.position, small_below=small_below)
        self._last = prefix, sums
        return sums

    def _cached(self, partition: str, changed_at: int) -> LiveSizes | None:
        known = self._known.get(partition)
        return known[1] if known is not None and known[0] == changed_at else None


def _nearest_rank(ordered: Sequence[int], share: float) -> int:
    """Return the least value that at least this share of all values does not exceed."""
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else 0


def _buckets(ordered: Sequence[int]) -> tuple[SizeBucket, ...]:
    if not ordered:
        return ()
    found = []
    for bit in range(ordered[0].bit_length(), ordered[-1].bit_length() + 1):
        least = 1 << bit >> 1
        within = ordered[bisect_left(ordered, least) : bisect_left(ordered, 1 << bit)]
        found.append(SizeBucket(least, len(within), sum(within)))
    return tuple(found)


def _partitions(files: Mapping[str, LiveSizes], small_below: int) -> tuple[PartitionSizes, ...]:
    found = [_partition(partition, each.sizes, small_below) for partition, each in files.items() if each.sizes]
    return tuple(sorted(found, key=lambda each: (-each.small_files, each.small_bytes, each.partition)))


def _partition(partition: str, sizes: Sequence[int], small_below: int) -> PartitionSizes:
    small = sizes[: bisect_left(sizes, small_below)]
    return PartitionSizes(partition, len(sizes), sum(sizes), len(small), sum(small))


def _fewest(found: PartitionSizes) -> int:
    return min(found.files, math.ceil(found.bytes / SizingSettings().max_file_bytes) or 1)
