"""Loading of a marker directory from storage, while other processes may write there.

A merge puts one segment and then deletes those that it replaces. A listing that is not a snapshot could pass the place
of the new segment before it is put, and the place of an old one after it is deleted. Two rules prevent a loss of their
markers:

- A merge's segment has a greater number than all that it replaces, and names sort as numbers (``segment``). A listing
  that reads names in ascending order, none of them earlier than a smaller one, reaches the new segment after it has
  missed the old one, or reaches the segment that has replaced the new one, which sorts later still. Object stores
  return pages in ascending order, each as it is at its request; HDFS returns a directory in pages of sorted names.
- A local disk returns names in any order. It returns several hundred names per call, and no name appears or disappears
  during one: the few segments of a directory are in one call. Beside thousands of direct markers they may be in two.
  For that case, and for stores that promise less than the above, listings are repeated until nothing of the one before
  is missing.

Numbers of earlier releases have fewer digits. A merge of those by a server of this release moves them once to an
earlier place; the first of two listings can miss that, the second cannot.
"""

from collections.abc import Container, Sequence

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Backend, Entry
from tallymark.backends.errors import NotFound
from tallymark.engine.errors import CorruptObject
from tallymark.engine.markers.name import INFIX, MarkerName, check_line, path_of
from tallymark.engine.markers.segment import (
    BATCHED_TYPE,
    FIRST_INCARNATION,
    HUDI_INCARNATION,
    TYPE_FILE,
    decode_segment,
    incarnation_of,
    is_claim,
    is_segment,
    marker_folder,
)


class LoadedMarkers:
    """The result of reading a marker directory: about 100 bytes of memory per marker, beside those of its line
    (``bench/markers/recovery``).
    """

    def __init__(self) -> None:
        self.lines: set[str] = set()
        """Each marker as a line of a segment (``name``)."""
        self.direct: set[str] = set()
        """Those of the lines that are objects of their own."""
        self.object_count = 0
        self.segments: dict[str, int] = {}
        """Size in bytes of each segment whose incarnation was claimed: no server rewrites it, so it may be merged."""
        self.is_claimed = False
        """Whether a server has claimed an incarnation, which it does before it puts its first segment."""
        self.is_announced = False
        """Whether the folder states that it contains segments: the writer of the instant may have put that already."""
        self.next_incarnation = FIRST_INCARNATION
        """Greater than every incarnation that was found, so that its segments may replace all of theirs."""

    @property
    def names(self) -> set[MarkerName]:
        return set(map(MarkerName.parse, self.lines))

    @property
    def paths(self) -> frozenset[str]:
        """The data files that are marked."""
        return frozenset(map(path_of, self.lines))

    @classmethod
    def of_new_instant(cls) -> "LoadedMarkers":
        """Return the result for an instant that has just been reserved, with its kind of markers announced."""
        loaded = cls()
        loaded.is_announced = True
        return loaded


async def load_markers(backend: Backend, folder: str, *, concurrency: int, ends_servers: bool = False) -> LoadedMarkers:
    """Read every marker that was acked before the call, batched and direct ones alike.

    The folder is listed until nothing of the listing before is missing and each segment has been read: a merge may
    delete a segment between its listing and its reading. Markers read once are kept. What others add since was
    acked later, so that a server that starts beside a busy one need not wait for a pause of it.

    With ``ends_servers`` the caller has sealed the instant, and every marker is read that servers outside of its driver
    ever ack: their claims are overwritten before the last listings start, and they ack nothing without one
    (docs/decisions/0035-markers-of-a-service-outside-the-driver.md). They are not deleted: a copy of a claim's put that
    lands late would be a claim again.
    """
    loaded = LoadedMarkers()
    read: set[str] = set()
    previous: list[str] | None = None
    claimed: set[int | None] = set()
    ended: set[str] = set()

    async def end_claim(path: str) -> None:
        await backend.put(path, b"")

    while True:
        entries = []
        async for entry in backend.list(folder):
            if is_marker_object(folder, entry.path):
                entries.append(entry)
            elif entry.path == f"{folder}/{TYPE_FILE}":
                loaded.is_announced = entry.size == len(BATCHED_TYPE)  # DIRECT_TYPE is shorter, and a torn one, too
        listing = [entry.path for entry in entries]
        claims = [path for path in listing if is_claim(path.rpartition("/")[2])]
        claimed.update(incarnation_of(path.rpartition("/")[2]) for path in claims)
        if ends_servers and not ended.issuperset(claims):  # first: what cannot be read ends this call
            await concurrently(end_claim, [path for path in claims if path not in ended], limit=concurrency)
            ended.update(claims)
            continue
        missing = await read_objects(backend, folder, loaded, sorted(set(listing) - read), concurrency)
        read.update(listing)
        is_settled = listing == previous if ends_servers else previous is not None and set(previous) <= set(listing)
        if is_settled and not missing:
            loaded.object_count = len(listing)
            loaded.segments = _segments(folder, entries, claimed)
            return loaded
        previous = listing


async def has_markers(backend: Backend, instant: str) -> bool:
    """Return whether the directory of an instant contains markers, or the claim of a server."""
    folder = marker_folder(instant)
    return any([is_marker_object(folder, entry.path) async for entry in backend.list(folder)])


async def read_objects(
    backend: Backend, folder: str, loaded: LoadedMarkers, paths: Sequence[str], concurrency: int
) -> bool:
    """Add the markers of these objects. Return True if a listed object is missing."""
    missing = []

    async def read(path: str) -> None:
        try:
            data = await backend.get(path)
        except NotFound:
            missing.append(path)
        else:
            rewritten = incarnation_of(path.rpartition("/")[2]) == HUDI_INCARNATION
            loaded.lines.update(decode_segment(data, source=path, rewritten=rewritten))

    segments = []
    for path in paths:
        name = path.removeprefix(f"{folder}/")
        incarnation = incarnation_of(name)
        if incarnation is None:
            loaded.direct.update(_direct_marker(name))
        else:
            loaded.next_incarnation = max(loaded.next_incarnation, incarnation + 1)
            loaded.is_claimed |= not is_segment(name)
        if is_segment(name):
            segments.append(path)
    loaded.lines |= loaded.direct
    await concurrently(read, segments, limit=concurrency)
    return bool(missing)


def _segments(folder: str, entries: Sequence[Entry], claimed: Container[int | None]) -> dict[str, int]:
    names = {entry.path.removeprefix(f"{folder}/"): entry for entry in entries}
    return {
        entry.path: entry.size for name, entry in names.items() if is_segment(name) and incarnation_of(name) in claimed
    }


def is_marker_object(folder: str, path: str) -> bool:
    """Return False for other objects in the folder, such as staged data files, which appear and disappear while tasks
    write.
    """
    name = path.removeprefix(f"{folder}/")
    return incarnation_of(name) is not None or INFIX in name


def _direct_marker(name: str) -> list[str]:
    """Return the marker that an object's name states, or nothing: the folder may contain other files."""
    try:
        return [check_line(name)]
    except CorruptObject:
        return []
