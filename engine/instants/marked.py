"""Markers of an instant that its tasks have created, with a service and directly."""

from contextlib import suppress
from dataclasses import dataclass, replace

from tallymark.backends.contract import Backend, exists
from tallymark.backends.errors import NotFound
from tallymark.backends.events import EventLog
from tallymark.engine.errors import CorruptObject
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.markers.loading import load_markers
from tallymark.engine.markers.name import INFIX, MarkerName, path_of
from tallymark.engine.markers.segment import TYPE_FILE, marker_folder, read_marker_type
from tallymark.engine.settings import MarkerKind
from tallymark.engine.tasks.file_name import is_file_of
from tallymark.engine.timeline.reservation import Reservation
from tallymark.engine.timeline.summary import MarkerMode

_events = EventLog(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """Paths of marked data files."""

    batched: frozenset[str]
    """Marked by the service and not directly."""
    direct: frozenset[str]
    segments: int = 0
    """Objects that contain the former, as far as is known."""

    @property
    def paths(self) -> frozenset[str]:
        return self.batched | self.direct

    def mode(self, kind: MarkerKind) -> MarkerMode:
        """Return how markers were kept in effect, for a job that was to keep them as ``kind``."""
        if self.batched and self.direct:
            return "mixed"
        return "direct" if self.direct else kind


async def marked_in_storage(
    handle: TableHandle, reservation: Reservation, *, is_sealed: bool = True, is_outside: bool = False
) -> Marked:
    """Return every data file that the instant may have started, read from storage. To be called after the seal was put:
    then no service outside of the writer's process acks anything later. Without a seal nothing is changed.
    ``is_outside``: all servers of it were outside of the writer's process, where a claim alone shows no damage.

    Missing or unreadable markers are never treated as none: then the table is listed for files that carry the instant
    in their names, in addition to the readable markers. That is logged as a warning, unless another process has rolled
    the instant back at the same time: then its reservation is gone, too.
    """
    folder, concurrency = marker_folder(reservation.instant), handle.commit_settings.concurrency
    marked = Marked(batched=frozenset(), direct=frozenset())
    try:
        loaded = await load_markers(handle.backend, folder, concurrency=concurrency, ends_servers=is_sealed)
        direct = frozenset(map(path_of, loaded.direct))
        marked = Marked(batched=loaded.paths - direct, direct=direct, segments=len(loaded.segments))
        # There from the beginning: without it, or if nothing is in it, markers are missing.
        if read_marker_type(await handle.backend.get(f"{folder}/{TYPE_FILE}")) is None:
            raise CorruptObject(f"{folder}/{TYPE_FILE} is empty")
        # A server puts its first segment soon after its claim, and a merge leaves one.
        if loaded.is_claimed and not loaded.segments and not is_outside:
            raise CorruptObject(f"{folder} has the claim of a marker server and no segment")
    except (CorruptObject, NotFound) as error:
        found = [entry.path async for entry in handle.backend.list("") if is_file_of(entry.path, reservation.instant)]
        if await exists(handle.backend, reservation.path):
            _events.warning("markers.unreadable", instant=reservation.instant, reason=error)
        else:
            _events.info("markers.unreadable", instant=reservation.instant, reason=error)
        return replace(marked, batched=marked.batched | (frozenset(found) - marked.direct))
    return marked


async def directly_marked(backend: Backend, instant: str) -> frozenset[str]:
    """Return every path whose marker its task has put itself and may rely on. To be called after the seal was put.

    One listing is enough, however many pages it has: such a marker was put before the seal, and no process deletes it.
    """
    folder = marker_folder(instant)
    paths = set()
    async for entry in backend.list(folder):
        name = entry.path.removeprefix(f"{folder}/")
        with suppress(CorruptObject):  # no marker of ours
            if INFIX in name:
                paths.add(MarkerName.parse(name).path)
    return frozenset(paths)
