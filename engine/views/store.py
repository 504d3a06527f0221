"""Store of a view's blocks: local, sync, with one owner. A lost block is read again from the log."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from tallymark.engine.errors import TallymarkError


class DamagedStore(TallymarkError):
    """Local files of a store cannot be trusted. Nothing is lost: the view reads these partitions again.

    ``partitions``: those concerned; None means all.
    """

    def __init__(self, message: str, *, partitions: frozenset[str] | None = None) -> None:
        super().__init__(message)
        self.partitions = partitions


class FullStore(DamagedStore):
    """Its disk accepts no more. The partitions concerned could not be stored; once there is room again, they can."""

    @classmethod
    def on(cls, folder: Path, reason: Exception, *, partitions: frozenset[str] | None = frozenset()) -> Self:
        return cls(
            f"{folder}: the disk takes no more of a view that is larger than memory ({reason}); no answer was given. "
            "Free space there, name another place by ViewSettings(folder=...), or keep the view in memory alone by "
            "store='memory'",
            partitions=partitions,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatistics:
    """A reading of a store's counters."""

    partitions: int
    memory_bytes: int
    """Size of blocks in memory."""
    disk_bytes: int = 0
    """Size of its local files."""
    spilled: int = 0
    """Blocks written to disk so far."""
    restored: int = 0
    """Blocks read back from disk so far."""


class ViewStore(Protocol):
    """Blocks by partition. Owned by one thread; its methods may wait for a local disk, and for nothing else.

    Each method may raise DamagedStore. Then nothing that it stored is valid for the partitions concerned: the view
    forgets them.
    """

    def contains(self, partition: str) -> bool: ...

    def rows(self, partition: str) -> bytes | None:
        """Return the partition's block, which does not change; None where the store does not contain it."""
        ...

    def load(self, partition: str, block: bytes) -> None:
        """Store a partition's block, in place of an earlier one."""
        ...

    def add(self, partition: str, block: bytes) -> None:
        """Add rows to a stored partition."""
        ...

    def remove(self, partition: str, names: Collection[str], position: int) -> bool:
        """Mark files of a stored partition as removed at this position. Return False where one of them is missing.

        A store that does not check raises DamagedStore when the partition is read.
        """
        ...

    def purge(self, partition: str, floor: int) -> None:
        """Drop the rows of files that were removed at ``floor`` or before."""
        ...

    def forget(self, partitions: Iterable[str] | None = None) -> None:
        """Drop these partitions, by default all."""
        ...

    def partitions(self) -> Collection[str]:
        """Return the stored partitions."""
        ...

    def statistics(self) -> StoreStatistics: ...

    def close(self) -> None:
        """Release memory, files and handles, and end the store."""
        ...
