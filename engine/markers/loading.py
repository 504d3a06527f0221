"""Loading of a marker directory from storage, while other processes may write there.

A merge puts one segment, and then deletes those that it replaces. A listing that is not a snapshot could pass the place
of the new segment before it is put, and the place of an old one after it is deleted. Two things keep it from losing
their markers:

- A merge's segment has a greater number than all that it replaces, and names sort as numbers (``segment``). A listing
  that reads names in ascending order and none earlier than a smaller one, comes to the new segment after it has missed
  the old one, or to what has replaced the new one, which lies later still. Object stores give pages in ascending order,
  each as it is when it is asked for; HDFS gives a directory in pages of sorted names.
- A local disk gives names in an order of its own. It hands out some hundred names a call, and no name comes or goes
  during one: the few segments of a directory are in one call. Beside thousands of direct markers they may be in two.
  For that, and for stores that promise less than the above, listings are repeated until two agree.

Numbers of earlier releases have fewer digits. What a server of this release merges of those moves once to a place
before them; the first of two listings can miss that, the second cannot.
"""

from collections.abc import Sequence

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Backend, Entry
from tallymark.backends.errors import NotFound
from tallymark.engine.errors import CorruptObject
from tallymark.engine.markers.name import INFIX, MarkerName, check_line, path_of
from tallymark.engine.markers.segment import (
    BATCHED_TYPE,
    FIRST_INCARNATION,
    TYPE_FILE,
    decode_segment,
    incarnation_of,
    is_segment,
)


class LoadedMarkers:
    """What one reading of a marker directory found: some 100 bytes of memory for each marker beside those of its line
    (``bench/markers/recovery``).
    """

    def __init__(self) -> None:
        self.lines: set[str] = set()
        """Each marker as a line of a segment (``name``)."""
        self.object_count = 0
        self.segments: dict[str, int] = {}
        """The bytes of each segment whose incarnation was claimed: no server rewrites it, so it may be merged."""
        self.is_announced = False
        """Whether the folder states that it contains segments: the writer of the instant may have put that already."""
        self.next_incarnation = FIRST_INCARNATION
        """Above every incarnation that was found, so that its segments may replace all of theirs."""

    @property
    def names(self) -> set[MarkerName]:
        return set(map(MarkerName.parse, self.lines))

    @property
    def paths(self) -> frozenset[str]:
        """The data files that are marked."""
        return frozenset(map(path_of, self.lines))

    @classmethod
    def of_new_instant(cls) -> "LoadedMarkers":
        """Return what a reading would find where an instant has just been reserved, and its kind of
        markers announced.
        """
        loaded = cls()
        loaded.is_announced = True
        return loaded


async def load_markers(backend: Backend, folder: str, *, concurrency: int) -> LoadedMarkers:
    """Every marker that was acked before the call began, batched and direct ones alike.

    It lists until two listings agree and each segment of theirs has been read: a merge may also delete a segment
    between its listing and its reading. What was read once stays read.

    Raises:
        CorruptObject: a segment cannot be understood.
    """
    loaded = LoadedMarkers()
    read: set[str] = set()
    previous: list[str] | None = None
    while True:
        entries = []
        async for entry in backend.list(folder):
            if is_marker_object(folder, entry.path):
                entries.append(entry)
            elif entry.path == f"{folder}/{TYPE_FILE}":
                loaded.is_announced = entry.size == len(BATCHED_TYPE)  # DIRECT_TYPE is shorter, and a torn one, too
        listing = [entry.path for entry in entries]
        missing = await read_objects(backend, folder, loaded, sorted(set(listing) - read), concurrency)
        read.update(listing)
        if listing == previous and not missing:
            loaded.object_count = len(listing)
            loaded.segments = _claimed(folder, entries)
            return loaded
        previous = listing


async def read_objects(
    backend: Backend, folder: str, loaded: LoadedMarkers, paths: Sequence[str], concurrency: int
) -> bool:
    """Add what the objects say; True if one that was listed is gone."""
    missing = []

    async def read(path: str) -> None:
        try:
            data = await backend.get(path)
        except NotFound:
            missing.append(path)
        else:
            loaded.lines.update(decode_segment(data, source=path))

    segments = []
    for path in paths:
        name = path.removeprefix(f"{folder}/")
        incarnation = incarnation_of(name)
        if incarnation is None:
            loaded.lines.update(_direct_marker(name))
        else:
            loaded.next_incarnation = max(loaded.next_incarnation, incarnation + 1)
        if is_segment(name):
            segments.append(path)
    await concurrently(read, segments, limit=concurrency)
    return bool(missing)


def _claimed(folder: str, entries: Sequence[Entry]) -> dict[str, int]:
    names = {entry.path.removeprefix(f"{folder}/"): entry for entry in entries}
    claimed = {incarnation_of(name) for name in names if not is_segment(name)}
    return {
        entry.path: entry.size for name, entry in names.items() if is_segment(name) and incarnation_of(name) in claimed
    }


def is_marker_object(folder: str, path: str) -> bool:
    """Return False for what else lies in the folder: staged data files come and go while tasks write."""
    name = path.removeprefix(f"{folder}/")
    return incarnation_of(name) is not None or INFIX in name


def _direct_marker(name: str) -> list[str]:
    """Return the marker that an object's name is, or nothing: other files may lie in the folder."""
    try:
        return [check_line(name)]
    except CorruptObject:
        return []
