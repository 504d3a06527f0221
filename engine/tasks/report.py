"""Report of a finished task attempt: the files it published and the names it did not use."""

from dataclasses import dataclass
from typing import Any

import msgpack

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.timeline.entry import DataFile

FORMAT = 4


@dataclass(frozen=True, slots=True)
class Fill:
    """A small file whose rows a task has rewritten, before new ones of its partition."""

    old: DataFile
    paths: tuple[str, ...]
    """Files of the report that start with its rows, in their order: nearly always one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """Proof of one finished task attempt. Only the reports that the engine calls winners are committed.

    ``encode`` and ``decode`` carry it through engines whose results are columns of bytes.
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
        packed: bytes = msgpack.packb(
            {
                "format": FORMAT,
                "instant": self.instant,
                "task": self.task,
                "attempt": self.attempt,
                "files": [file.fields() for file in self.files],
                "fills": [[fill.old.fields(), list(fill.paths)] for fill in self.fills],
                "planned": [list(size) for size in self.planned],
                "unused": list(self.unused),
                "direct_markers": self.direct_markers,
                "marker_wait_s": self.marker_wait_s,
                "seconds": self.seconds,
            }
        )
        return packed

    @classmethod
    def decode(cls, data: bytes) -> "TaskReport":
        """Return the report. Raises InvalidRequest for bytes that ``encode`` of this release did not write."""
        try:
            fields: dict[str, Any] = msgpack.unpackb(data)
            if fields.pop("format") != FORMAT:
                raise ValueError("another format")
            files = tuple(map(DataFile.of_fields, fields.pop("files")))
            fills = tuple(Fill(DataFile.of_fields(old), tuple(paths)) for old, paths in fields.pop("fills"))
            planned = tuple((path, size) for path, size in fields.pop("planned"))
            return cls(files=files, fills=fills, planned=planned, unused=tuple(fields.pop("unused")), **fields)
        except (ValueError, KeyError, TypeError, AttributeError, msgpack.UnpackException) as error:
            raise InvalidRequest(
                f"no task report of this release: {error!r}; install one release everywhere"
            ) from error
