"""Repeated reads of a marker directory from another process, while its server writes there."""

from dataclasses import dataclass

from tallymark.backends.contract import Backend
from tallymark.engine.markers.loading import LoadedMarkers, is_marker_object, read_objects
from tallymark.engine.markers.name import INFIX
from tallymark.engine.markers.segment import is_segment


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerFolder:
    """Content of the directory at a moment."""

    markers: int
    """Durable markers seen so far, each counted once."""
    segments: int
    direct: int
    """Markers that are separate objects."""
    bytes: int
    """Bytes of the segments."""


class MarkerWatch:
    """Remembers the markers that it has seen: about 200 bytes each."""

    def __init__(self, backend: Backend, folder: str, *, concurrency: int) -> None:
        self._backend = backend
        self._folder = folder
        self._concurrency = concurrency
        self._loaded = LoadedMarkers()
        self._read: set[str] = set()

    async def scan(self) -> MarkerFolder:
        """List once, and get each segment that is new: segments are never rewritten.

        A concurrent merge may hide markers until the next scan.

        Raises:
            CorruptObject: a segment cannot be understood.
        """
        found = [
            entry async for entry in self._backend.list(self._folder) if is_marker_object(self._folder, entry.path)
        ]
        paths = {entry.path for entry in found}
        await read_objects(self._backend, self._folder, self._loaded, sorted(paths - self._read), self._concurrency)
        self._read = paths
        segments = [entry.size for entry in found if is_segment(_name(entry.path))]
        return MarkerFolder(
            markers=len(self._loaded.lines),
            segments=len(segments),
            direct=sum(INFIX in _name(path) for path in paths),
            bytes=sum(segments),
        )


def _name(path: str) -> str:
    return path.rpartition("/")[2]
