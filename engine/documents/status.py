"""Document of ``tallymark status``: the content of a table, and its open instants."""

from typing import TYPE_CHECKING, Literal, TypedDict

from tallymark.engine.documents.document import document_of

if TYPE_CHECKING:
    from tallymark.engine.inspection.status import OpenInstant, TableStatus
    from tallymark.engine.table import Table


class ColumnFields(TypedDict):
    name: str
    type: str
    """Arrow's name of the type."""
    nullable: bool


class OpenInstantFields(TypedDict):
    instant: str
    operation: str
    marker_kind: Literal["batched", "direct"]
    host: str
    pid: int
    beat_age_s: float | None
    """Seconds since the last heartbeat; null without one."""
    writer: Literal["alive", "dead", "unknown"]
    decision: Literal["commit", "rollback", "clean"] | None
    """The commit log's decision; null while it is open."""


class StatusDocument(TypedDict):
    url: str
    name: str
    readers: Literal["directory", "table"]
    retain_hours: float | None
    """How long replaced files are retained; null where they are not."""
    retained_files: int
    """Replaced files that are still retained; not among ``files``."""
    retained_bytes: int
    partition_by: list[str]
    columns: list[ColumnFields]
    position: int
    """The number of the newest entry of the commit log; 0 before the first."""
    newest_entry: str | None
    """ISO 8601: when it was put, by its writer's clock; null before the first."""
    files: int
    rows: int
    bytes: int
    partitions: int
    """Partitions that contain files now."""
    open_instants: list[OpenInstantFields]


async def read_status(table: "Table") -> StatusDocument:
    return status_document(table.url, await table.status())


def status_document(url: str, found: "TableStatus") -> StatusDocument:
    sizes = found.sizes
    return document_of(
        StatusDocument,
        found,
        url=url,
        retained_files=len(found.retained),
        retained_bytes=sum(file.bytes for file in found.retained),
        columns=[document_of(ColumnFields, field, type=str(field.type)) for field in found.schema],
        position=sizes.position,
        files=sizes.files,
        rows=sizes.rows,
        bytes=sizes.bytes,
        partitions=len(sizes.partitions),
        open_instants=[_open_instant(instant) for instant in found.open_instants],
    )


def _open_instant(found: "OpenInstant") -> OpenInstantFields:
    reservation = found.reservation
    return document_of(
        OpenInstantFields,
        found,
        instant=reservation.instant,
        operation=reservation.operation,
        marker_kind=reservation.marker_kind,
        host=reservation.writer.host,
        pid=reservation.writer.pid,
    )
