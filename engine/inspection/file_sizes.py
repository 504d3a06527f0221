"""Distribution of a table's file sizes, and the number of small files, of one snapshot. Pure."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tallymark.engine.settings import SizingSettings
from tallymark.engine.timeline.entry import DataFile

SMALL_BYTES = SizingSettings().small_file_bytes
"""A file below this size is small: an append fills it by default."""


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
    """Files that the same bytes would fill, partition by partition, at the default ``max_file_bytes``."""
    rewritten_bytes: int
    """Total size of the files that were rewritten on the way to these."""
    buckets: tuple[SizeBucket, ...]
    """From the smallest file's to the largest's, empty ones in between."""
    partitions: tuple[PartitionSizes, ...]
    """Partitions, those with the most small files first."""

    @classmethod
    def of(cls, files: Iterable[DataFile], *, position: int, small_below: int = SMALL_BYTES) -> "FileSizes":
        files = tuple(files)
        sizes = sorted(file.bytes for file in files)
        partitions = _partitions(files, small_below)
        return cls(
            position=position,
            small_below=small_below,
            files=len(files),
            rows=sum(file.rows for file in files),
            bytes=sum(sizes),
            p50=_nearest_rank(sizes, 0.50),
            p95=_nearest_rank(sizes, 0.95),
            largest=sizes[-1] if sizes else 0,
            fewest=sum(math.ceil(found.bytes / SizingSettings().max_file_bytes) or 1 for found in partitions),
            rewritten_bytes=sum(file.rewritten_bytes for file in files),
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


def _nearest_rank(ordered: Sequence[int], share: float) -> int:
    """Return the least value that at least this share of all values does not exceed."""
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else 0


def _buckets(ordered: Sequence[int]) -> tuple[SizeBucket, ...]:
    if not ordered:
        return ()
    found: dict[int, list[int]] = {}
    for size in ordered:
        found.setdefault(size.bit_length(), []).append(size)
    bits = range(ordered[0].bit_length(), ordered[-1].bit_length() + 1)
    return tuple(SizeBucket(1 << bit >> 1, len(found.get(bit, ())), sum(found.get(bit, ()))) for bit in bits)


def _partitions(files: Iterable[DataFile], small_below: int) -> tuple[PartitionSizes, ...]:
    sizes: dict[str, list[int]] = {}
    for file in files:
        sizes.setdefault(file.partition, []).append(file.bytes)
    found = [_partition(partition, of, small_below) for partition, of in sizes.items()]
    return tuple(sorted(found, key=lambda each: (-each.small_files, each.small_bytes, each.partition)))


def _partition(partition: str, sizes: Sequence[int], small_below: int) -> PartitionSizes:
    small = [size for size in sizes if size < small_below]
    return PartitionSizes(partition, len(sizes), sum(sizes), len(small), sum(small))
