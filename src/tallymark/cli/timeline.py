"""``tallymark timeline``: the entries of the commit log."""

import functools
from typing import TYPE_CHECKING

import click

from tallymark.cli.asking import Place, answer, at_a_url, json_keys
from tallymark.cli.page import NAMES_SHOWN, print_table
from tallymark.engine.documents.timeline import EntryFields, ScopeFields, TimelineDocument, read_timeline
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
        _scope(entry["scope"]) if entry["horizon"] is None else f"replaced up to position {entry['horizon']:,}",
    )


def _scope(scope: ScopeFields | None) -> str:
    if scope is None:
        return "-"
    if scope["all"]:
        return "all"
    parts = [*(f"{prefix}/..." for prefix in scope["prefixes"]), *scope["partitions"]]
    named, count = parts[:NAMES_SHOWN], len(parts)
    rest = [f"{count - len(named):,} more"] if count > len(named) else []
    return ", ".join([*named, *rest]) or "nothing"
