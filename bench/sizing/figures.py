"""What is read off the files that a history has left, and off those that it wrote on the way."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tallymark.bench.sizing.replay import Replay, Written
from tallymark.bench.sizing.shape import Shape

FROM_COMMIT = 3
"""Sizes are held to the target from here on: by then a planner has had something to learn from."""

PARTS = (1 / 64, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 0.9, 1.1, 1.25)
"""Of the maximum: where the bars of a histogram end. The last one but one is what hits the target within 10 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    files: int
    partitions: int
    minimum: int
    """Files, had each partition been written at once and to the byte."""
    small_files: int
    """Below the limit under which an append may fill them."""
    rewritten: float
    """Bytes for each byte inserted."""
    error_p95: float | None
    """|size - maximum| / maximum of files from the third commit on, without each commit's last of a partition."""
    largest: float
    """Over the maximum, of all that were ever written."""
    histogram: tuple[int, ...]
    """Files by their size, as ``PARTS`` divides it, and those above."""

    @property
    def files_max(self) -> float:
        """The bar for one write of the whole: 5 % over the minimum, and one more a partition."""
        return 1.05 * self.minimum + self.partitions

    @property
    def small_share(self) -> float:
        return self.small_files / self.files


def figures(shape: Shape, found: Replay) -> Figures:
    sizes = [file.bytes for file in found.files.values()]
    return Figures(
        files=len(sizes),
        partitions=len({file.partition for file in found.files.values()}),
        minimum=minimum(((file.partition, file.bytes) for file in found.files.values()), shape.max_file_bytes),
        small_files=sum(size < shape.small_file_bytes for size in sizes),
        rewritten=found.rewritten_bytes / found.inserted_bytes,
        error_p95=error_p95(found.written, shape.max_file_bytes),
        largest=max(file.bytes for file in found.written) / shape.max_file_bytes,
        histogram=histogram(sizes, shape.max_file_bytes),
    )


def minimum(sizes: Iterable[tuple[str, int]], max_file_bytes: int) -> int:
    """Files of at most the maximum that hold what the partitions hold."""
    held: dict[str, int] = {}
    for partition, size in sizes:
        held[partition] = held.get(partition, 0) + size
    return sum(-(-size // max_file_bytes) for size in held.values())


def error_p95(written: Sequence[Written], max_file_bytes: int) -> float | None:
    """None where every file is the last of its partition."""
    return percentile(
        [
            abs(file.bytes - max_file_bytes) / max_file_bytes
            for file in written
            if file.commit >= FROM_COMMIT and not file.is_last
        ]
    )


def percentile(errors: Sequence[float], share: int = 95) -> float | None:
    """The smallest value that so many of a hundred do not exceed."""
    return sorted(errors)[-(-share * len(errors) // 100) - 1] if errors else None


def histogram(sizes: Iterable[int], max_file_bytes: int) -> tuple[int, ...]:
    counts = [0] * (len(PARTS) + 1)
    for size in sizes:
        counts[sum(size > part * max_file_bytes for part in PARTS)] += 1
    return tuple(counts)
