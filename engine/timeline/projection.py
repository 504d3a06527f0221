"""The projection of a log entry: the Hudi timeline files (version 6, timeline layout 1) for readers of Hudi.

Owns: paths and bytes. Does not own: when they are put, and the order in which entries are projected
(``instants.project``). The bytes are a pure function of the entry and the table's properties, so that any process may
write them, repeatedly, by put-if-absent. They do not contain the log position: an entry does not know its number.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from tallymark.engine.timeline.entry import DataFile, LogEntry
from tallymark.engine.timeline.instant import FLOOR, parse_instant
from tallymark.engine.timeline.outcome import outcome_fields
from tallymark.engine.timeline.properties import TableProperties

Action = Literal["commit", "replacecommit"]

_TABLE = "tallymark.table"
"""Key of the table's id in a commit's extra metadata."""

PARTITION_METADATA = ".hoodie_partition_metadata"
"""The file by which Hudi on Java recognizes a directory as a partition."""


@dataclass(frozen=True, slots=True)
class ProjectedFile:
    """A small object to be put if absent."""

    path: str
    data: bytes


def floor_files(properties: TableProperties) -> tuple[ProjectedFile, ...]:
    """Return the empty commit below all others; its requested file first, its completed file last.

    With it no file is older than the timeline's first instant (readers treat such files as committed), and an empty
    table has a schema.
    """
    metadata = {**_commit_metadata("INSERT"), "extraMetadata": {"schema": properties.avro_schema()}}
    return _timeline_files(FLOOR, "commit", "INSERT", metadata)


def projected_files(
    entry: LogEntry, properties: TableProperties, *, new_partitions: Collection[str]
) -> tuple[ProjectedFile, ...]:
    """Return the files that show the entry to readers of the Hudi format, in the order of their puts: the last one
    decides.

    ``new_partitions`` are partition paths to which no earlier entry had added files ("" for a table without
    partitions). Only commits are projected: a rollback and a clean change nothing that those readers see.
    """
    if entry.kind != "commit":
        return ()
    described = tuple(_partition_metadata(partition, entry.instant) for partition in sorted(set(new_partitions)))
    return described + _timeline_files(entry.instant, _action(entry), _operation(entry), _metadata(entry, properties))


def completed_path(entry: LogEntry) -> str:
    """Return the file whose presence means that a commit has been projected."""
    assert entry.kind == "commit", "only commits are projected"
    return _completed_path(entry.instant, _action(entry))


def instant_of_projected(path: str) -> str:
    """Return the instant of a file of the Hudi timeline."""
    return path.rpartition("/")[2].partition(".")[0]


def projected_table(data: bytes) -> str | None:
    """Return the id of the table that a completed commit was projected for; None where it records none."""
    try:
        found = json.loads(data)["extraMetadata"][_TABLE]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None


def _timeline_files(
    instant: str, action: Action, operation: str, metadata: dict[str, object]
) -> tuple[ProjectedFile, ...]:
    inflight = "inflight" if action == "commit" else f"{action}.inflight"
    return (
        ProjectedFile(f".hoodie/{instant}.{action}.requested", b""),
        ProjectedFile(f".hoodie/{instant}.{inflight}", _json(_commit_metadata(operation))),
        ProjectedFile(_completed_path(instant, action), _json(metadata)),
    )


def _completed_path(instant: str, action: Action) -> str:
    return f".hoodie/{instant}.{action}"


def _action(entry: LogEntry) -> Action:
    """Return the Hudi action. An append that filled files is a replacecommit: no file group gets a second slice."""
    return "replacecommit" if entry.operation == "overwrite" or entry.removed else "commit"


def _operation(entry: LogEntry) -> str:
    if entry.operation in ("upsert", "delete"):
        return entry.operation.upper()
    if _action(entry) == "commit":
        return "INSERT"
    is_all = entry.scope is not None and entry.scope.is_all
    return "INSERT_OVERWRITE_TABLE" if is_all else "INSERT_OVERWRITE"


def _metadata(entry: LogEntry, properties: TableProperties) -> dict[str, object]:
    metadata = {
        **_commit_metadata(_operation(entry)),
        "partitionToWriteStats": {
            partition: [_write_stat(file) for file in files] for partition, files in _by_partition(entry.added)
        },
        "extraMetadata": {"schema": properties.avro_schema(), **_extra(entry)},
    }
    if _action(entry) == "replacecommit":
        metadata["partitionToReplaceFileIds"] = {
            partition: [file.file_id for file in files] for partition, files in _by_partition(entry.removed)
        }
    return metadata


def _extra(entry: LogEntry) -> dict[str, str]:
    """Return the facts for which Hudi has no field, as texts, like all extra metadata."""
    extra = {"tallymark.nonce": entry.nonce}
    if entry.table:
        extra[_TABLE] = entry.table
    if entry.txn is not None:
        extra["tallymark.txn"] = entry.txn
    if entry.summary is not None:
        extra["tallymark.result"] = _json(outcome_fields(entry)).decode("ascii")
    return extra


def _commit_metadata(operation: str) -> dict[str, object]:
    """Return an empty HoodieCommitMetadata."""
    return {"partitionToWriteStats": {}, "compacted": False, "extraMetadata": {}, "operationType": operation}


def _by_partition(files: Collection[DataFile]) -> Iterator[tuple[str, Iterator[DataFile]]]:
    return groupby(sorted(files, key=lambda file: (file.partition, file.name)), key=lambda file: file.partition)


def _write_stat(file: DataFile) -> dict[str, object]:
    """Return the HoodieWriteStat of a new file group: nothing was updated, merged or logged."""
    return {
        "fileId": file.file_id,
        "path": file.path,
        "partitionPath": file.partition,
        "prevCommit": "null",  # Hudi writes it as text
        "numWrites": file.rows,
        "numInserts": file.rows,
        "numDeletes": 0,
        "numUpdateWrites": 0,
        "totalWriteBytes": file.bytes,
        "fileSizeInBytes": file.bytes,
        "totalWriteErrors": 0,
        "totalLogRecords": 0,
        "totalLogFilesCompacted": 0,
        "totalLogSizeCompacted": 0,
        "totalUpdatedRecordsCompacted": 0,
        "totalLogBlocks": 0,
        "totalCorruptLogBlock": 0,
        "totalRollbackBlocks": 0,
        "tempPath": None,
        "cdcStats": None,
        "minEventTime": None,
        "maxEventTime": None,
        "runtimeStats": None,
    }


def _partition_metadata(partition: str, instant: str) -> ProjectedFile:
    depth = partition.count("/") + 1 if partition else 0
    date = parse_instant(instant).isoformat(timespec="milliseconds")
    text = f"#partition metadata\n#{date}\ncommitTime={instant}\npartitionDepth={depth}\n"
    return ProjectedFile(f"{partition}/{PARTITION_METADATA}" if partition else PARTITION_METADATA, text.encode())


def _json(metadata: dict[str, object]) -> bytes:
    return json.dumps(metadata, sort_keys=True, separators=(",", ":")).encode("ascii")
