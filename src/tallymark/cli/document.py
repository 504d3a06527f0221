"""Documents printed by ``--json``: one object per command. Keys may be added; none is removed or changes its meaning.

Sizes are bytes, ages seconds, instants 17 digits of UTC time, paths relative to ``url``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast, get_args, get_type_hints, is_typeddict

from tallymark.backends.errors import TallymarkError

if TYPE_CHECKING:  # pyarrow and the engine take half a second to import
    from tallymark.backends.doctor import Diagnosis
    from tallymark.engine.inspection.status import OpenInstant
    from tallymark.engine.instants.rollback import Ended
    from tallymark.engine.table import Table
    from tallymark.engine.timeline.entry import LogEntry


class ColumnFields(TypedDict):
    name: str
    type: str
    """As Arrow spells it."""
    nullable: bool


class OpenInstantFields(TypedDict):
    instant: str
    operation: str
    marker_kind: Literal["batched", "direct"]
    host: str
    pid: int
    beat_age_s: float | None
    """Since the last sign of life; null if there is none."""
    writer: Literal["alive", "dead", "unknown"]
    decision: Literal["commit", "rollback", "clean"] | None
    """What the commit log says of it; null while it is open."""


class StatusDocument(TypedDict):
    url: str
    name: str
    readers: Literal["directory", "table"]
    retain_hours: float | None
    """How long replaced files are kept; null where they are not."""
    retained_files: int
    """Replaced files that are kept still; not among ``files``."""
    retained_bytes: int
    partition_by: list[str]
    columns: list[ColumnFields]
    position: int
    """The number of the newest entry of the commit log; 0 before the first."""
    files: int
    rows: int
    bytes: int
    partitions: int
    """Partitions that hold files now."""
    open_instants: list[OpenInstantFields]


class ScopeFields(TypedDict):
    all: bool
    partitions: list[str]
    prefixes: list[str]
    """Each stands for that partition and all below it."""


class SizingResultFields(TypedDict):
    planned_files: int
    planned_bytes: int
    planned_fills: int
    filled_files: int
    rewritten_bytes: int
    """Of the files that were filled."""
    lost_fills: int
    """Small files whose fill was lost to another commit."""
    size_error_p95: float | None
    """Of planned files: by how much their sizes differ from the plan's, over the plan's."""


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
    """From the moment that tasks could begin to the moment when the log was asked to decide."""
    sizing: SizingResultFields | None
    """Null where no sizes were planned."""


class EntryFields(TypedDict):
    position: int
    instant: str
    kind: Literal["commit", "rollback", "clean"]
    operation: Literal["append", "overwrite", "rollback", "clean"]
    scope: ScopeFields | None
    """What an overwrite replaced; null for all else."""
    files_added: int
    files_removed: int
    rows: int
    """Rows added; those of removed files are not taken off."""
    bytes: int
    """Bytes added, likewise."""
    txn: str | None
    """The name under which a write was committed once and only once; null for all else."""
    result: ResultFields | None
    """Null for a rollback."""
    horizon: int | None
    """Of a clean: what was replaced up to this position was let go; null for all else."""


class TimelineDocument(TypedDict):
    url: str
    entries: list[EntryFields]
    """Oldest first."""


class MarkerFields(TypedDict):
    path: str
    """The data file, which may or may not have come to be."""
    io: Literal["CREATE", "MERGE", "APPEND"]


class MarkersDocument(TypedDict):
    url: str
    instant: str
    markers: list[MarkerFields]


class EndedFields(TypedDict):
    instant: str
    outcome: Literal["rolled back", "was committed", "was cleaned"]
    marked: int
    """Files that it had marked, and that are gone now."""
    fences: int
    """Of these, names that an empty file occupies for a while."""


class RollbackDocument(TypedDict):
    url: str
    ended: list[EndedFields]


class ReaderFields(TypedDict):
    position: int
    """What was replaced after this position of the log stays for it."""
    host: str
    pid: int


class LookedAtFields(TypedDict):
    entries: int
    partitions: int


class CleanDocument(TypedDict):
    url: str
    dry_run: bool
    """True of what would go, and has not."""
    ended: list[EndedFields]
    files: int
    """Replaced files whose time was over."""
    bytes: int
    partitions: list[str]
    """Where these files lay."""
    horizon: int
    """What was replaced up to this position is gone; 0 with ``readers="directory"``, where it goes at once."""
    looked_at: LookedAtFields
    """What of the log and the table, to know that."""
    held_files: int
    """Replaced files whose time was over, too, and which stay for these readers."""
    readers: list[ReaderFields]
    fences_swept: int


class CheckpointDocument(TypedDict):
    url: str
    position: int
    """Of the log; who reads it begins there."""
    files: int
    partitions: int
    """Partitions that hold files."""
    parts: int
    parts_written: int
    """Of these; the others are those of the checkpoint before. 0 where there was one of this position already."""
    bytes_written: int
    seconds: float


class PromiseFields(TypedDict):
    promise: str
    result: Literal["kept", "broken", "untried"]
    detail: str


class LatencyFields(TypedDict):
    verb: Literal["put_new", "put", "get", "list", "delete"]
    count: int
    """Calls that were timed, one after the other."""
    median_s: float
    p99_s: float


class GroundFields(TypedDict):
    file_system: str
    mount_point: str
    free_bytes: int | None
    """Null where the file system does not report it."""


class DoctorDocument(TypedDict):
    url: str
    fit: bool
    verdict: str
    interval_s: float | None
    """What ``MarkerSettings.interval_s="auto"`` would begin with; null where no put succeeded."""
    promises: list[PromiseFields]
    latencies: list[LatencyFields]
    clock_skew_s: float | None
    """How far the store's clock is ahead of this machine's; null where it could not be read."""
    ground: GroundFields | None
    """What a local directory lies on."""
    remarks: list[str]
    left: list[str]
    """What could not be removed."""
    seconds: float


class ErrorFields(TypedDict):
    type: str
    """The error's class in Python, such as ``UnsupportedTable``."""
    message: str


class ErrorDocument(TypedDict):
    """The last line on stderr of a command that failed."""

    error: ErrorFields


async def status(table: "Table") -> StatusDocument:
    found = await table.status()
    snapshot = found.snapshot
    return {
        "url": table.url,
        "name": found.name,
        "readers": found.readers,
        "retain_hours": found.retain_hours,
        "retained_files": len(found.retained),
        "retained_bytes": sum(file.bytes for file in found.retained),
        "partition_by": list(snapshot.partition_by),
        "columns": [
            {"name": field.name, "type": str(field.type), "nullable": field.nullable} for field in snapshot.schema
        ],
        "position": snapshot.position,
        "files": len(snapshot.files),
        "rows": snapshot.rows,
        "bytes": snapshot.bytes,
        "partitions": len({file.partition for file in snapshot.files}),
        "open_instants": [_open_instant(instant) for instant in found.open_instants],
    }


async def timeline(table: "Table", *, last: int | None) -> TimelineDocument:
    entries = await table.timeline()
    newest = entries if last is None else entries[-last:]
    return {"url": table.url, "entries": [_entry(position, entry) for position, entry in newest]}


async def markers(table: "Table", instant: str) -> MarkersDocument:
    from tallymark.engine.errors import InvalidRequest

    if all(found.instant != instant for found in await table.open_instants()):
        raise InvalidRequest(f"instant {instant!r} is not open; 'tallymark status' lists those that are")
    names = await table.markers(instant)
    return {"url": table.url, "instant": instant, "markers": [{"path": name.path, "io": name.io} for name in names]}


async def rollback(table: "Table", instant: str | None) -> RollbackDocument:
    return {"url": table.url, "ended": [_ended(ended) for ended in await table.rollback(instant)]}


async def clean(
    table: "Table",
    *,
    retain_hours: float | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> CleanDocument:
    result = await table.clean(retain_hours=retain_hours, dry_run=dry_run, progress=progress)
    return {
        "url": table.url,
        "dry_run": result.is_dry_run,
        "ended": [_ended(ended) for ended in result.ended],
        "files": result.files,
        "bytes": result.bytes,
        "partitions": list(result.partitions),
        "horizon": result.horizon,
        "looked_at": {"entries": result.looked_at.entries, "partitions": result.looked_at.partitions},
        "held_files": result.held_files,
        "readers": [
            {"position": reader.position, "host": reader.process.host, "pid": reader.process.pid}
            for reader in result.readers
        ],
        "fences_swept": result.fences_swept,
    }


async def checkpoint(table: "Table") -> CheckpointDocument:
    done = await table.checkpoint()
    return {
        "url": table.url,
        "position": done.position,
        "files": done.files,
        "partitions": done.partitions,
        "parts": done.parts,
        "parts_written": done.parts_written,
        "bytes_written": done.bytes_written,
        "seconds": done.seconds,
    }


def doctor(url: str, found: "Diagnosis") -> DoctorDocument:
    from tallymark.engine.markers.pace import PUTS_PER_PUT_TIME

    put_s = next((latency.mean_s for latency in found.latencies if latency.verb == "put_new"), None)
    ground = found.ground
    return {
        "url": url,
        "fit": found.is_fit,
        "verdict": found.verdict,
        "interval_s": None if put_s is None else put_s / PUTS_PER_PUT_TIME,
        "promises": [
            {"promise": each.promise, "result": each.result, "detail": each.detail} for each in found.findings
        ],
        "latencies": [
            {"verb": each.verb, "count": each.count, "median_s": each.median_s, "p99_s": each.p99_s}
            for each in found.latencies
        ],
        "clock_skew_s": found.clock_skew_s,
        "ground": None
        if ground is None
        else {
            "file_system": ground.file_system,
            "mount_point": ground.mount_point,
            "free_bytes": ground.free_bytes,
        },
        "remarks": list(found.remarks),
        "left": list(found.left),
        "seconds": found.seconds,
    }


def failure(error: TallymarkError) -> ErrorDocument:
    return {"error": {"type": type(error).__name__, "message": str(error)}}


def keys(kind: Any) -> str:
    """Return the keys of a document, such as ``{url, entries: [{position, instant}]}``."""
    return "{" + ", ".join(f"{name}{_nested_keys(hint)}" for name, hint in get_type_hints(kind).items()) + "}"


def _nested_keys(hint: Any) -> str:
    nested = next((part for part in (hint, *get_args(hint)) if is_typeddict(part)), None)
    if nested is None:
        return ""
    return f": [{keys(nested)}]" if getattr(hint, "__origin__", None) is list else f": {keys(nested)}"


def _open_instant(found: "OpenInstant") -> OpenInstantFields:
    reservation = found.reservation
    return {
        "instant": reservation.instant,
        "operation": reservation.operation,
        "marker_kind": reservation.marker_kind,
        "host": reservation.writer.host,
        "pid": reservation.writer.pid,
        "beat_age_s": found.beat_age_s,
        "writer": found.writer,
        "decision": found.decision,
    }


def _entry(position: int, entry: "LogEntry") -> EntryFields:
    from tallymark.engine.timeline.outcome import outcome_fields

    scope = entry.scope
    return {
        "position": position,
        "instant": entry.instant,
        "kind": entry.kind,
        "operation": entry.operation,
        "scope": None
        if scope is None
        else {"all": scope.is_all, "partitions": sorted(scope.partitions), "prefixes": sorted(scope.prefixes)},
        "files_added": len(entry.added),
        "files_removed": len(entry.removed),
        "rows": entry.new_rows,
        "bytes": sum(file.bytes for file in entry.added),
        "txn": entry.txn,
        "result": None if entry.summary is None else cast("ResultFields", outcome_fields(entry)),
        "horizon": entry.horizon if entry.kind == "clean" else None,
    }


def _ended(ended: "Ended") -> EndedFields:
    return {
        "instant": ended.instant,
        "outcome": ended.outcome,
        "marked": ended.marked,
        "fences": ended.fences,
    }
