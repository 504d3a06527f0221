"""Document of ``tallymark timeline``: entries of the commit log."""

from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

from tallymark.engine.documents.document import document_of

if TYPE_CHECKING:
    from tallymark.engine.table import Table
    from tallymark.engine.timeline.entry import LogEntry


class ScopeFields(TypedDict):
    all: bool
    partitions: list[str]
    prefixes: list[str]
    """Each stands for that partition and everything below it."""


class SizingResultFields(TypedDict):
    planned_files: int
    planned_bytes: int
    planned_fills: int
    filled_files: int
    rewritten_bytes: int
    """Size of the files that were filled."""
    lost_fills: int
    """Small files whose fill was lost to another commit."""
    size_error_p95: float | None
    """95th percentile, over planned files, of the difference between actual and planned size over planned size."""


class ChangeFields(TypedDict):
    """Rows and files of an upsert or delete."""

    inserted: int
    updated: int
    deleted: int
    ignored: int
    superseded: int
    """Of the deleted rows, those whose keys are elsewhere now."""
    looked_up_files: int
    looked_up_bytes: int
    rewritten_files: int
    rewritten_bytes: int
    removed_files: int
    """Files all of whose rows were deleted."""
    removed_bytes: int


class ResultFields(TypedDict):
    """A commit's ``WriteResult`` as the log records it; in the Hudi timeline it is ``tallymark.result``."""

    instant: str
    txn: str | None
    rows: int
    bytes: int
    files: int
    partitions: int
    """Partitions that files were added to."""
    removed_files: int
    fences: int
    marker_mode: Literal["batched", "direct", "mixed"]
    markers: int
    direct_markers: int
    """Of these, markers that tasks have put themselves."""
    marker_objects: int
    puts: int
    """Puts that the markers cost."""
    seconds: float
    """From the moment at which tasks could start to the moment at which the entry was put."""
    sizing: SizingResultFields | None
    """Null where no sizes were planned."""
    changes: NotRequired[ChangeFields]
    """Of an upsert or delete."""


class EntryFields(TypedDict):
    position: int
    instant: str
    kind: Literal["commit", "rollback", "clean"]
    operation: Literal["append", "overwrite", "upsert", "delete", "rollback", "clean"]
    scope: ScopeFields | None
    """What an overwrite replaced; null for all other entries."""
    files_added: int
    files_removed: int
    rows: int
    """Rows added; those of removed files are not subtracted."""
    bytes: int
    """Bytes added, likewise."""
    txn: str | None
    """The name under which a write was committed exactly once; null for all other entries."""
    result: ResultFields | None
    """Null for a rollback."""
    horizon: int | None
    """Of a clean: files that were replaced up to this position are expired; null for all other entries."""


NAMES_SHOWN = 3
"""Partitions of a scope that are named on one line."""


def shown_scope(entry: EntryFields) -> str:
    """Return what an entry has replaced or, of a clean, expired; empty for all others."""
    if entry["horizon"] is not None:
        return f"replaced up to position {entry['horizon']:,}"
    scope = entry["scope"]
    if scope is None:
        return ""
    if scope["all"]:
        return "all"
    parts = [*(f"{prefix}/..." for prefix in scope["prefixes"]), *scope["partitions"]]
    named, count = parts[:NAMES_SHOWN], len(parts)
    rest = [f"{count - len(named):,} more"] if count > len(named) else []
    return ", ".join([*named, *rest]) or "nothing"


class TimelineDocument(TypedDict):
    url: str
    entries: list[EntryFields]
    """Oldest first."""


async def read_timeline(table: "Table", *, after: int | None = None, last: int | None = None) -> TimelineDocument:
    """Return the newest entries, or those after a position; ``last`` is how many at most."""
    entries = await table.timeline(after=after, limit=last)
    return {"url": table.url, "entries": [entry_fields(position, entry) for position, entry in entries]}


def entry_fields(position: int, entry: "LogEntry") -> EntryFields:
    from tallymark.engine.timeline.outcome import outcome_fields

    return document_of(
        EntryFields,
        entry,
        position=position,
        scope=None if entry.scope is None else entry.scope.fields(),
        files_added=len(entry.added),
        files_removed=len(entry.removed),
        rows=entry.new_rows,
        bytes=sum(file.bytes for file in entry.added),
        result=None if entry.summary is None else outcome_fields(entry),
        horizon=entry.horizon if entry.kind == "clean" else None,
    )
