"""Report of a finished task attempt: the files it published and the names it did not use."""

from collections.abc import Callable
from dataclasses import dataclass

from tallymark.engine.tasks.in_flight import Readers, pack, unpack
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
    direct_markers: int = 0
    """Markers that the task has put itself: all of a job without a service; otherwise those of an outage."""
    marker_wait_s: float = 0.0
    """Seconds for which the task waited for markers."""
    seconds: float = 0.0

    @property
    def rows(self) -> int:
        """New rows, without those of files that were filled."""
        return sum(file.rows for file in self.files) - sum(fill.old.rows for fill in self.fills)

    def encode(self) -> bytes:
        return pack(self, magic=_MAGIC, format_=FORMAT, default=_plain)

    @classmethod
    def decode(cls, data: bytes) -> "TaskReport":
        """Return the report. Raises InvalidRequest for one that was damaged on its way, or is of another format."""
        return unpack(cls, data, magic=_MAGIC, format_=FORMAT, readers=_READERS)

    def __reduce__(self) -> tuple[Callable[[bytes], "TaskReport"], tuple[bytes]]:
        return TaskReport.decode, (self.encode(),)


def _plain(value: DataFile | Fill) -> list[object]:
    return value.fields() if isinstance(value, DataFile) else [value.old, value.paths]


_READERS: Readers = {
    "files": lambda files: tuple(map(DataFile.of_fields, files)),
    "fills": lambda fills: tuple(Fill(DataFile.of_fields(old), tuple(paths)) for old, paths in fills),
    "planned": lambda planned: tuple((path, size) for path, size in planned),
    "unused": tuple,
}
