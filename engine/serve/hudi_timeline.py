"""The state of an instant on the timeline of a table that Hudi itself writes.

Source: Hudi's ``ActiveTimelineV1`` (table versions up to 7: ``.hoodie/<instant>.<action>``) and ``ActiveTimelineV2``
(8 and 9: ``.hoodie/timeline/<instant>_<completion time>.<action>``). The file of an earlier state remains.
"""

from enum import Enum

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Backend
from tallymark.backends.errors import NotFound
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.timeline import java_properties
from tallymark.engine.timeline.properties import PROPERTIES

_ACTIONS = ("commit", "deltacommit", "replacecommit", "compaction", "logcompaction", "clustering")
"""Actions that write data files, and so have markers."""

_COMPLETED = ("commit", "deltacommit", "replacecommit")
"""What these complete as: a compaction as a commit, a clustering as a replacecommit."""

_INFLIGHT = ("inflight", *(f"{action}.inflight" for action in _ACTIONS if action != "commit"))

_REQUESTED = tuple(f"{action}.requested" for action in _ACTIONS)

READS = 16
"""Names that are looked for at once."""


class HudiState(Enum):
    INFLIGHT = "inflight"
    """A writer may write data files."""
    REQUESTED = "requested"
    """Planned, as a compaction or a clustering that was rolled back: the same instant may be inflight again."""
    OVER = "over"
    """Completed, or rolled back and gone: no writer uses the instant any more."""


async def hudi_state(backend: Backend, instant: str) -> HudiState:
    """Return the state of an instant as it is in storage: a listing of the timeline's folder for table versions 8 and
    9, and up to 15 gets below.

    Raises:
        InvalidRequest, CorruptObject: as ``hudi_properties``.
    """
    properties = await hudi_properties(backend)
    if properties.get("hoodie.timeline.layout.version", "1") == "1":
        return await _state_by_names(backend, instant)
    return await _state_by_listing(backend, instant, properties.get("hoodie.timeline.path", "timeline"))


async def hudi_properties(backend: Backend) -> dict[str, str]:
    """Return the properties of a table that Hudi writes.

    Raises:
        InvalidRequest: there is no table, or it is one that Tallymark writes, whose markers are not Hudi's.
        CorruptObject: its properties cannot be read.
    """
    try:
        properties = java_properties.load(await backend.get(PROPERTIES), source=PROPERTIES)
    except NotFound as error:
        raise InvalidRequest(f"{backend.url} has no {PROPERTIES}: no Hudi table is there") from error
    if "tallymark.format" in properties:
        raise InvalidRequest(f"{backend.url} is a table that Tallymark writes: Hudi can read it, and not write to it")
    return properties


async def _state_by_names(backend: Backend, instant: str) -> HudiState:
    found = await _existing(backend, instant, (*_COMPLETED, *_INFLIGHT))
    if not found.isdisjoint(_COMPLETED):
        return HudiState.OVER
    if found:
        return HudiState.INFLIGHT
    return HudiState.REQUESTED if await _existing(backend, instant, _REQUESTED) else HudiState.OVER


async def _existing(backend: Backend, instant: str, endings: tuple[str, ...]) -> set[str]:
    found: set[str] = set()

    async def look(ending: str) -> None:
        try:
            await backend.get_range(f".hoodie/{instant}.{ending}", 0, 1)
        except NotFound:
            return
        found.add(ending)

    await concurrently(look, endings, limit=READS)
    return found


async def _state_by_listing(backend: Backend, instant: str, folder: str) -> HudiState:
    names = [entry.path.rpartition("/")[2] async for entry in backend.list(f".hoodie/{folder}")]
    pending = {name.removeprefix(f"{instant}.") for name in names if name.startswith(f"{instant}.")}
    completed = {name.rpartition(".")[2] for name in names if name.startswith(f"{instant}_")}
    if not completed.isdisjoint(_COMPLETED):
        return HudiState.OVER
    if not pending.isdisjoint(_INFLIGHT):
        return HudiState.INFLIGHT
    return HudiState.OVER if pending.isdisjoint(_REQUESTED) else HudiState.REQUESTED
