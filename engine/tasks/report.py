"""Report of a finished task attempt: the files it published and the names it did not use."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tallymark.engine.tasks.in_flight import Readers, pack, plain, record, unpack
from tallymark.engine.timeline.entry import DataFile

FORMAT = 5
_MAGIC = b"TMRP"


@dataclass(frozen=True, slots=True)
class Fill:
    """A small file whose rows a task has rewritten, before new ones of its partition."""

    old: DataFile
    paths: tuple[str, ...]
    """Files of the report that start with its rows, in their order: nearly always one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCounts:
    """Rows of a write by key, each counted once."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    ignored: int = 0
    """Rows without effect: older than the stored row, superseded by another of the batch, or not there to delete."""
    checksum: int = 0
    """Sum of the rows' hashes, as of ``upsert.keys``."""

    @property
    def rows(self) -> int:
        return self.inserted + self.updated + self.deleted + self.ignored

    def __add__(self, other: "ChangeCounts") -> "ChangeCounts":
        return ChangeCounts(**{name: getattr(self, name) + getattr(other, name) for name in self.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """Proof of one finished task attempt. Only the reports that the engine calls winners are committed.

    ``encode`` and ``decode`` carry it through engines whose results are columns of bytes; pickles contain the same
    bytes.
    """

    instant: str
    task: int
    attempt: int
    files: tuple[DataFile, ...]
    unused: tuple[str, ...] = ()
    """Paths that were marked ahead of need and never written: no file will appear there."""
    fills: tuple[Fill, ...] = ()
    """Files that the commit is to remove with the same entry that adds ``files``."""
    planned: tuple[tuple[str, int], ...] = ()
    """Paths of planned files, with the expected bytes of each."""
    rewrites: tuple[DataFile, ...] = ()
    """Files of the table whose rows the task has changed; ``files`` have the others of their rows."""
    gone: tuple[str, ...] = ()
    """Paths of files whose rows were to be changed, and that are missing: another commit has replaced them."""
    changes: ChangeCounts = ChangeCounts()
    """The rows that it got for these and others, in a write by key."""
    direct_markers: int = 0
    """Markers that the task has put itself: all of a job without a service; otherwise those of an outage."""
    marker_wait_s: float = 0.0
    """Seconds for which the task waited for markers."""
    seconds: float = 0.0

    @property
    def rows(self) -> int:
        """New rows, without those of files that were filled or rewritten; less than 0 where more were deleted."""
        old = sum(fill.old.rows for fill in self.fills) + sum(file.rows for file in self.rewrites)
        return sum(file.rows for file in self.files) - old

    def encode(self) -> bytes:
        return pack(self, magic=_MAGIC, format_=FORMAT, default=_plain)

    @classmethod
    def decode(cls, data: bytes) -> "TaskReport":
        """Return the report. Raises InvalidRequest for one that was damaged on its way, or is of another format."""
        return unpack(cls, data, magic=_MAGIC, format_=FORMAT, readers=_READERS)

    def __reduce__(self) -> tuple[Callable[[bytes], "TaskReport"], tuple[bytes]]:
        return TaskReport.decode, (self.encode(),)


def _plain(value: DataFile | Fill | ChangeCounts) -> Any:
    match value:
        case DataFile():
            return value.fields()
        case Fill():
            return [value.old, value.paths]
    return plain(value)


_READERS: Readers = {
    "files": lambda files: tuple(map(DataFile.of_fields, files)),
    "fills": lambda fills: tuple(Fill(DataFile.of_fields(old), tuple(paths)) for old, paths in fills),
    "planned": lambda planned: tuple((path, size) for path, size in planned),
    "unused": tuple,
    "rewrites": lambda files: tuple(map(DataFile.of_fields, files)),
    "gone": tuple,
    "changes": lambda found: record(ChangeCounts, found),
}
