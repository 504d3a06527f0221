"""Read a marker directory from storage."""

from collections.abc import Sequence

from tallymark.backends.contract import Backend, Entry
from tallymark.backends.errors import NotFound
from tallymark.engine.concurrently import concurrently
from tallymark.engine.errors import CorruptObject
from tallymark.engine.markers.name import INFIX, MarkerName
from tallymark.engine.markers.segment import decode_segment, incarnation_of, is_segment


class LoadedMarkers:
    """What one reading of a marker directory found."""

    def __init__(self) -> None:
        self.names: set[MarkerName] = set()
        self.object_count = 0
        self.segments: dict[str, int] = {}
        """The bytes of each segment whose incarnation was claimed: nobody rewrites it, so it may be merged."""
        self.next_incarnation = 0


async def load_markers(backend: Backend, folder: str, *, concurrency: int) -> LoadedMarkers:
    """Every marker that was acked before the call began, batched and direct ones alike.

    A listing of several pages is no snapshot, and a merge may delete a segment between its listing and its reading, so
    it lists until two listings agree; what was read once stays read.

    Raises:
        CorruptObject: a segment cannot be understood.
    """
    loaded = LoadedMarkers()
    read: set[str] = set()
    previous: list[str] | None = None
    while True:
        entries = [entry async for entry in backend.list(folder) if _is_marker_object(folder, entry.path)]
        listing = [entry.path for entry in entries]
        missing = await _read_objects(backend, folder, loaded, sorted(set(listing) - read), concurrency)
        read.update(listing)
        if listing == previous and not missing:
            loaded.object_count = len(listing)
            loaded.segments = _claimed(folder, entries)
            return loaded
        previous = listing


async def _read_objects(
    backend: Backend, folder: str, loaded: LoadedMarkers, paths: Sequence[str], concurrency: int
) -> bool:
    """Add what the objects say; True if one that was listed is gone."""
    gone = []

    async def read(path: str) -> None:
        try:
            data = await backend.get(path)
        except NotFound:
            gone.append(path)
        else:
            loaded.names.update(decode_segment(data, source=path))

    segments = []
    for path in paths:
        name = path.removeprefix(f"{folder}/")
        incarnation = incarnation_of(name)
        if incarnation is None:
            loaded.names.update(_direct_marker(name))
        else:
            loaded.next_incarnation = max(loaded.next_incarnation, incarnation + 1)
        if is_segment(name):
            segments.append(path)
    await concurrently(read, segments, limit=concurrency)
    return bool(gone)


def _claimed(folder: str, entries: Sequence[Entry]) -> dict[str, int]:
    names = {entry.path.removeprefix(f"{folder}/"): entry for entry in entries}
    claimed = {incarnation_of(name) for name in names if not is_segment(name)}
    return {
        entry.path: entry.size for name, entry in names.items() if is_segment(name) and incarnation_of(name) in claimed
    }


def _is_marker_object(folder: str, path: str) -> bool:
    """False for what else lies in the folder: staged data files come and go while tasks write."""
    name = path.removeprefix(f"{folder}/")
    return incarnation_of(name) is not None or INFIX in name


def _direct_marker(name: str) -> list[MarkerName]:
    """The marker that an object's name is, or nothing: other files may lie in the folder."""
    try:
        return [MarkerName.parse(name)]
    except CorruptObject:
        return []
