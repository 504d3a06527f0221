"""Markers of an instant that its tasks have created, with a service and directly."""

from contextlib import suppress
from dataclasses import dataclass

from tallymark.backends.contract import Backend
from tallymark.engine.errors import CorruptObject
from tallymark.engine.markers.loading import load_markers
from tallymark.engine.markers.name import INFIX, MarkerName, path_of
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.settings import MarkerKind
from tallymark.engine.timeline.summary import MarkerMode


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


async def marked_in_storage(backend: Backend, instant: str, *, concurrency: int) -> Marked:
    """Return every path that a service outside of this process has acked, or a task marked directly. To be called after
    the seal was put; no service acks anything later.

    Raises CorruptObject for a segment that cannot be read.
    """
    loaded = await load_markers(backend, marker_folder(instant), concurrency=concurrency, ends_servers=True)
    direct = frozenset(map(path_of, loaded.direct))
    return Marked(batched=loaded.paths - direct, direct=direct, segments=len(loaded.segments))


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
