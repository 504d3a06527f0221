"""Document of ``tallymark markers --watch``: the markers of open instants, scanned repeatedly."""

from typing import TYPE_CHECKING, Literal, TypedDict

from tallymark.engine.documents.document import document_of

if TYPE_CHECKING:
    from tallymark.engine.inspection.watch import WatchedInstant


class WatchedFields(TypedDict):
    instant: str
    operation: str
    marker_kind: Literal["batched", "direct"]
    markers: int
    """Durable markers."""
    direct_markers: int
    """Of these, separate objects."""
    segments: int
    bytes: int
    """Bytes of the segments."""
    host: str
    pid: int
    writer: Literal["alive", "dead", "unknown"]
    """``dead``: the next write or rollback ends the instant. ``unknown``: with read access only."""
    beat_age_s: float | None
    """Seconds since the last heartbeat; null without one, or with read access only."""
    markers_s: float | None
    """Markers per second since the last scan; null at the first."""
    is_over: bool
    """True in the last document that names the instant."""
    decision: Literal["commit", "rollback", "clean"] | None
    """The commit log's decision; null while it is open, and where its writer gave it up before."""
    position: int | None
    """Position of that entry."""


class WatchDocument(TypedDict):
    """One scan, on one line."""

    url: str
    at: str
    """Time by this machine's clock, ISO 8601, UTC."""
    instants: list[WatchedFields]


def watched_fields(found: "WatchedInstant") -> WatchedFields:
    folder, reservation = found.folder, found.reservation
    return document_of(
        WatchedFields,
        found,
        host=reservation.writer.host,
        pid=reservation.writer.pid,
        markers=folder.markers,
        direct_markers=folder.direct,
        segments=folder.segments,
        bytes=folder.bytes,
    )
