"""Outcome of a commit in numbers, derived from its entry."""

from dataclasses import asdict
from typing import Any, TypedDict

from tallymark.engine.errors import CorruptObject
from tallymark.engine.timeline.entry import LogEntry
from tallymark.engine.timeline.summary import ChangeSummary, MarkerMode, SizingSummary


class Outcome(TypedDict):
    """A ``WriteResult`` without what only a reader of the log, or the writer itself, can know."""

    instant: str
    txn: str | None
    rows: int
    bytes: int
    files: int
    partitions: int
    removed_files: int
    fences: int
    marker_mode: MarkerMode
    markers: int
    direct_markers: int
    marker_objects: int
    puts: int
    seconds: float
    sizing: SizingSummary | None
    changes: ChangeSummary | None


def outcome_of(entry: LogEntry) -> Outcome:
    """Return the outcome of a commit. Raises CorruptObject for an entry of an earlier release, or of another kind."""
    summary = entry.summary
    if summary is None or entry.kind != "commit":
        raise CorruptObject(f"the {entry.kind} of instant {entry.instant} does not record its outcome")
    return {
        "instant": entry.instant,
        "txn": entry.txn,
        "rows": entry.new_rows,
        "bytes": sum(file.bytes for file in entry.added),
        "files": len(entry.added),
        "partitions": len({file.partition for file in entry.added}),
        "removed_files": len(entry.removed),
        "fences": len(entry.fenced),
        "marker_mode": summary.marker_mode,
        "markers": summary.markers,
        "direct_markers": summary.direct_markers,
        "marker_objects": summary.marker_objects,
        "puts": summary.puts,
        "seconds": summary.seconds,
        "sizing": summary.sizing,
        "changes": summary.changes,
    }


def outcome_fields(entry: LogEntry) -> dict[str, Any]:
    """Return the outcome as JSON values; ``changes`` only of an upsert or delete."""
    outcome = outcome_of(entry)
    sizing, changes = outcome["sizing"], outcome["changes"]
    found = {**outcome, "sizing": None if sizing is None else asdict(sizing)}
    del found["changes"]
    return found if changes is None else {**found, "changes": asdict(changes)}
