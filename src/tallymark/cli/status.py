"""``tallymark status``: the content of a table, and its open instants."""

from typing import TYPE_CHECKING

import click

from tallymark.cli.asking import Place, answer, at_a_url, json_keys
from tallymark.cli.page import print_table
from tallymark.engine.documents.status import OpenInstantFields, StatusDocument, read_status
from tallymark.engine.jobs.result import shown_bytes

if TYPE_CHECKING:
    from rich.console import Console


@click.command(epilog=json_keys(StatusDocument))
@at_a_url
def status(at: Place) -> None:
    """Show a table's properties, contents and open writers."""
    answer(at, read_status, show_status)


def show_status(page: "Console", document: StatusDocument) -> None:
    facts = {
        "table": document["name"],
        "url": document["url"],
        "partitioned by": ", ".join(document["partition_by"]) or "nothing",
        "readers": document["readers"],
        **_retained(document),
        "position": f"{document['position']:,}",
        "newest entry": document["newest_entry"] or "none",
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
