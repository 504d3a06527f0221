"""Document of ``tallymark markers``: the markers of an open instant."""

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from tallymark.engine.table import Table


class MarkerFields(TypedDict):
    path: str
    """The data file, which may or may not exist."""
    io: Literal["CREATE", "MERGE", "APPEND"]


class MarkersDocument(TypedDict):
    url: str
    instant: str
    markers: list[MarkerFields]


async def read_markers(table: "Table", instant: str) -> MarkersDocument:
    from tallymark.engine.errors import InvalidRequest

    if all(found.instant != instant for found in await table.open_instants()):
        raise InvalidRequest(f"instant {instant!r} is not open; 'tallymark status' lists those that are")
    names = await table.markers(instant)
    return {"url": table.url, "instant": instant, "markers": [{"path": name.path, "io": name.io} for name in names]}
