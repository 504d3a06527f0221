"""``tallymark timeline``: the entries of the commit log."""

import functools
from typing import TYPE_CHECKING

import click

from tallymark.cli.asking import Place, answer, at_a_url, json_keys
from tallymark.cli.page import print_table
from tallymark.engine.documents.timeline import EntryFields, TimelineDocument, read_timeline, shown_scope
from tallymark.engine.jobs.result import shown_bytes

if TYPE_CHECKING:
    from rich.console import Console


@click.command(epilog=json_keys(TimelineDocument))
@at_a_url
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the N newest entries.")
def timeline(at: Place, last: int | None) -> None:
    """List commits and rollbacks, oldest first."""
    answer(at, functools.partial(read_timeline, last=last), show_timeline)


def show_timeline(page: "Console", document: TimelineDocument) -> None:
    if not document["entries"]:
        page.print("No entries: nothing has been committed yet.")
        return
    headings = ["position", "instant", "operation", "added", "removed", "rows", "bytes", "txn", "scope"]
    rows = [_row(entry) for entry in document["entries"]]
    print_table(page, headings, rows, folding=(7, 8), numbers=(0, 3, 4, 5, 6))


def _row(entry: EntryFields) -> tuple[str, ...]:
    return (
        f"{entry['position']:,}",
        entry["instant"],
        entry["operation"],
        f"{entry['files_added']:,}",
        f"{entry['files_removed']:,}",
        f"{entry['rows']:,}",
        shown_bytes(entry["bytes"]),
        entry["txn"] or "-",
        shown_scope(entry) or "-",
    )
