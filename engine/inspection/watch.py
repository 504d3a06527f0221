"""Progress of open instants from their markers in storage, from any process, without the service.

A scan costs two listings, of reservations and of heartbeats, and a read of the log's tail; for each open instant one
listing of its markers (a page per 1,000 objects), and a get for each segment that is new. Once a minute a heartbeat is
put and deleted, to read the store's clock.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import anyio

from tallymark.backends.contract import Backend
from tallymark.backends.errors import NotFound
from tallymark.engine.inspection.status import WriterState, not_open, writer_state
from tallymark.engine.instants.open_instants import read_reservation
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.maintenance.store_time import StoreClock
from tallymark.engine.markers.loading import LoadedMarkers, is_marker_object, read_objects
from tallymark.engine.markers.name import INFIX, path_of
from tallymark.engine.markers.segment import is_segment, marker_folder
from tallymark.engine.settings import MarkerKind
from tallymark.engine.timeline.history_base import Decided, DecisionKind
from tallymark.engine.timeline.reservation import OPEN_FOLDER, Reservation

Ages = Mapping[str, float] | None


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
        self._sorted: Sequence[str] = ()

    def lines(self) -> Sequence[str]:
        """Return the markers seen so far as lines (``engine.markers.name``), sorted by their paths. A call after a scan
        without new markers takes no time.
        """
        if len(self._sorted) != len(self._loaded.lines):
            self._sorted = sorted(sorted(self._loaded.lines), key=path_of)
        return self._sorted

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


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedInstant:
    reservation: Reservation
    folder: MarkerFolder
    """Content of the marker folder at the last scan while the instant was open."""
    beat_age_s: float | None
    """Seconds since the writer's last heartbeat, by the store's clock; None without one, or with read access only."""
    writer: WriterState
    markers_s: float | None = None
    """Markers per second since the last scan; None at the first."""
    is_over: bool = False
    """Set in one scan, the last one that returns the instant."""
    decision: DecisionKind | None = None
    """The log's decision once it is over; None if its writer gave it up before."""
    position: int | None = None
    """Position of that entry."""

    @property
    def instant(self) -> str:
        return self.reservation.instant

    @property
    def operation(self) -> str:
        return self.reservation.operation

    @property
    def marker_kind(self) -> MarkerKind:
        """As the job was to keep them; with a service, ``folder.direct`` counts those that its tasks put themselves."""
        return self.reservation.marker_kind


NOTHING = MarkerFolder(markers=0, segments=0, direct=0, bytes=0)


class InstantWatch:
    """Made by ``Table.watch``."""

    def __init__(self, handle: TableHandle, *, now: Callable[[], float] = anyio.current_time) -> None:
        """``now``: seconds of a monotonic clock."""
        self._handle = handle
        self._now = now
        self._reservations: dict[str, Reservation] = {}
        self._folders: dict[str, MarkerWatch] = {}
        self._seen: dict[str, tuple[float, WatchedInstant]] = {}
        self._over: set[str] = set()
        self._clock = StoreClock(handle, now=now)

    async def scan(self, instant: str | None = None) -> tuple[WatchedInstant, ...]:
        """Return the instants that are open now, or the named one, and those that have ended since the last scan.

        Raises:
            InvalidRequest: the named one is not open, at the first scan.
        """
        reserved = await self._reserved()
        if instant is not None and instant not in reserved and instant not in self._seen:
            raise not_open(instant)
        history = await self._handle.log.refresh()
        history.forget(history.head)  # decisions are known without their entries, and a watch may last for days
        self._over &= reserved
        selected = reserved - self._over | self._seen.keys()
        if instant is not None:
            selected &= {instant}
        ages = await self._clock.heartbeat_ages() if selected else {}
        found = []
        for each in sorted(selected):
            decided = history.decided(each)
            if decided is None and each in reserved:
                found.append(await self._scan_instant(each, ages))
            else:
                found.append(self._ended(each, ages, decided))
        return tuple(found)

    @property
    def marker_count(self) -> int:
        """Markers that it remembers."""
        return sum(seen.folder.markers for _, seen in self._seen.values())

    def markers(self, instant: str) -> Sequence[str]:
        """Return the markers of an instant that the last scan has seen, as lines sorted by their paths.

        Raises InvalidRequest: it was not open.
        """
        if instant not in self._folders:
            raise not_open(instant)
        return self._folders[instant].lines()

    async def _scan_instant(self, instant: str, ages: Ages) -> WatchedInstant:
        """Return an open instant."""
        if instant not in self._folders:
            concurrency = self._handle.commit_settings.concurrency
            self._folders[instant] = MarkerWatch(self._handle.backend, marker_folder(instant), concurrency=concurrency)
        folder = await self._folders[instant].scan()
        now, before = self._now(), self._seen.get(instant)
        rate = None
        if before is not None and now > before[0]:
            rate = (folder.markers - before[1].folder.markers) / (now - before[0])
        found = replace(self._last(instant, ages), folder=folder, markers_s=rate)
        self._seen[instant] = now, found
        return found

    def _last(self, instant: str, ages: Ages) -> WatchedInstant:
        """Return its folder as of the last scan; an empty one if it is new. The heartbeat is as of now."""
        seen = self._seen.get(instant)
        reservation = self._reservations[instant] if seen is None else seen[1].reservation
        return WatchedInstant(
            reservation=reservation,
            folder=NOTHING if seen is None else seen[1].folder,
            beat_age_s=None if ages is None else ages.get(instant),
            writer=writer_state(reservation, ages),
        )

    def _ended(self, instant: str, ages: Ages, decided: Decided | None) -> WatchedInstant:
        """Return an instant that is not open any more; it is returned only once."""
        last = self._last(instant, ages)
        self._over.add(instant)
        self._seen.pop(instant, None)
        self._folders.pop(instant, None)
        return replace(
            last,
            is_over=True,
            decision=decided.kind if decided else None,
            position=decided.position if decided else None,
        )

    async def _reserved(self) -> set[str]:
        """Return the reservation. Each one is read once, since it never changes."""
        names = set()
        for path in [entry.path async for entry in self._handle.backend.list(OPEN_FOLDER)]:
            instant = path.rpartition("/")[2]
            try:
                if instant not in self._reservations:
                    self._reservations[instant] = await read_reservation(self._handle, path)
            except NotFound:
                continue  # given back since
            names.add(instant)
        self._reservations = {name: self._reservations[name] for name in names}
        return names
