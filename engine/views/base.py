"""Base of a view: the table at one position of the log, read by partition on demand."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What a view keeps of every partition, whether its rows are loaded or not."""

    live: int
    """Files that are live."""
    changed_at: int
    """The last position at which files came or went."""


class ViewBase(Protocol):
    @property
    def position(self) -> int: ...

    @property
    def floor(self) -> int:
        """The oldest position that its rows answer for."""
        ...

    @property
    def partitions(self) -> Mapping[str, PartitionState]:
        """Every partition that had rows, as of ``position``."""
        ...

    def leaders(self, partitions: Iterable[str]) -> Collection[str]:
        """Of these so many that all of them have been read once ``blocks`` has been asked for each."""
        ...

    async def blocks(self, partition: str) -> Mapping[str, bytes]:
        """Return the block of this partition as of ``position``, and of others that are read with it at no further
        cost.

        Raises:
            CorruptObject: it cannot be read, or is gone.
        """
        ...


class NoBase:
    """The start of a log: a table that holds nothing."""

    position = 0
    floor = 0

    def __init__(self) -> None:
        self.partitions: Mapping[str, PartitionState] = {}

    def leaders(self, partitions: Iterable[str]) -> Collection[str]:
        return ()

    async def blocks(self, partition: str) -> Mapping[str, bytes]:
        raise AssertionError(f"partition {partition!r} of a table that holds nothing")
