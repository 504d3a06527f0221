"""``tallymark status``: the content of a table, and its open instants."""

from typing import TYPE_CHECKING, Literal, TypedDict

import click

from tallymark.cli.asking import Place, answer, at_a_url, json_keys
from tallymark.cli.document import document_of
from tallymark.cli.page import print_table
from tallymark.engine.jobs.result import shown_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from tallymark.engine.inspection.status import OpenInstant
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
    files: int
    rows: int
    bytes: int
    partitions: int
    """Partitions that contain files now."""
    open_instants: list[OpenInstantFields]


@click.command(epilog=json_keys(StatusDocument))
@at_a_url
def status(at: Place) -> None:
    """Show a table's properties, contents and open writers."""
    answer(at, read_status, show_status)


async def read_status(table: "Table") -> StatusDocument:
    found = await table.status()
    snapshot = found.snapshot
    return document_of(
        StatusDocument,
        snapshot,
        url=table.url,
        name=found.name,
        readers=found.readers,
        retain_hours=found.retain_hours,
        retained_files=len(found.retained),
        retained_bytes=sum(file.bytes for file in found.retained),
        columns=[document_of(ColumnFields, field, type=str(field.type)) for field in snapshot.schema],
        files=len(snapshot.files),
        partitions=len({file.partition for file in snapshot.files}),
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


def show_status(page: "Console", document: StatusDocument) -> None:
    facts = {
        "table": document["name"],
        "url": document["url"],
        "partitioned by": ", ".join(document["partition_by"]) or "nothing",
        "readers": document["readers"],
        **_retained(document),
        "position": f"{document['position']:,}",
        "partitions": f"{document['partitions']:,}",
        "files": f"{document['files']:,}",
        "rows": f"{document['rows']:,}",
        "bytes": f"{document['bytes']:,} ({shown_bytes(document['bytes'])})",
    }
    print_table(page, ["", ""], facts.items(), folding=(1,), has_header=False)
    columns = [
        (column["name"], column["type"], "" if column["nullable"] else "not null") for column in document["columns"]
    ]
    print_table(page, ["column", "type", ""], columns, folding=(0, 1))
    if not document["open_instants"]:
        page.print("No open instants: no writer is at work, and none has left anything.")
        return
    headings = ["open instant", "operation", "writer", "state", "last heartbeat", "markers"]
    print_table(page, headings, [_writer_row(instant) for instant in document["open_instants"]], folding=(2, 3))


def _writer_row(found: OpenInstantFields) -> tuple[str, ...]:
    age = found["beat_age_s"]
    return (
        found["instant"],
        found["operation"],
        f"{found['host']} process {found['pid']}",
        found["writer"] if found["decision"] is None else f"{found['writer']}, {found['decision']} to be finished",
        "none" if age is None else f"{age:,.0f} s ago",
        found["marker_kind"],
    )


def _retained(document: StatusDocument) -> dict[str, str]:
    if document["retain_hours"] is None:
        return {}
    kept = f"{document['retained_files']:,} files, {shown_bytes(document['retained_bytes'])}"
    return {"replaced files": f"kept for {document['retain_hours']:g} hours; now {kept}"}
