"""Base of a view: the table at one position of the log, read by partition on demand."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Facts of a partition that a view keeps, whether its rows are loaded or not."""

    live: int
    """Number of live files."""
    changed_at: int
    """The last position at which files were added or removed."""


class ViewBase(Protocol):
    @property
    def position(self) -> int: ...

    @property
    def floor(self) -> int:
        """The oldest position that its rows cover."""
        ...

    @property
    def partitions(self) -> Mapping[str, PartitionState]:
        """Every partition that had rows, as of ``position``."""
        ...

    def leaders(self, partitions: Iterable[str]) -> Collection[str]:
        """Return some of these partitions, so that ``blocks`` of each of them reads all of these partitions once."""
        ...

    async def blocks(self, partition: str) -> Mapping[str, bytes]:
        """Return the block of this partition as of ``position``, and blocks of others that are read with it at no
        further cost.

        Raises:
            CorruptObject: it is unreadable or missing.
        """
        ...


class NoBase:
    """The start of a log: an empty table."""

    position = 0
    floor = 0

    def __init__(self) -> None:
        self.partitions: Mapping[str, PartitionState] = {}

    def leaders(self, partitions: Iterable[str]) -> Collection[str]:
        return ()

    async def blocks(self, partition: str) -> Mapping[str, bytes]:
        raise AssertionError(f"partition {partition!r} of a table that holds nothing")
