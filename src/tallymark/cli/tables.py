"""The documents as tables for people. Without a terminal nothing is wrapped or cut off, so that grep finds it whole."""

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from tallymark.cli.document import (
    CleanDocument,
    EndedFields,
    EntryFields,
    MarkersDocument,
    OpenInstantFields,
    RollbackDocument,
    ScopeFields,
    StatusDocument,
    TimelineDocument,
)

UNBOUNDED = 100_000
"""Columns of a page that is no terminal."""

SCOPE_SHOWN = 3
"""Partitions of a scope that are named; ``--json`` names them all."""


def console() -> Console:
    """Nothing is read as markup: names of tables and partitions are anybody's."""
    width = None if sys.stdout.isatty() else UNBOUNDED
    return Console(width=width, markup=False, highlight=False, emoji=False)


def show_status(page: Console, document: StatusDocument) -> None:
    facts = {
        "table": document["name"],
        "url": document["url"],
        "partitioned by": ", ".join(document["partition_by"]) or "nothing",
        "readers": document["readers"],
        "position": f"{document['position']:,}",
        "partitions": f"{document['partitions']:,}",
        "files": f"{document['files']:,}",
        "rows": f"{document['rows']:,}",
        "bytes": f"{document['bytes']:,} ({decimal(document['bytes'])})",
    }
    _print(page, ["", ""], facts.items(), folding=(1,), has_header=False)
    columns = [
        (column["name"], column["type"], "" if column["nullable"] else "not null") for column in document["columns"]
    ]
    _print(page, ["column", "type", ""], columns, folding=(0, 1))
    if not document["open_instants"]:
        page.print("No open instants: nobody is writing, and nobody has left anything.")
        return
    headings = ["open instant", "operation", "writer", "state", "last beat", "markers"]
    _print(page, headings, [_open_instant(instant) for instant in document["open_instants"]], folding=(2, 3))


def show_timeline(page: Console, document: TimelineDocument) -> None:
    if not document["entries"]:
        page.print("No entries: nothing has been committed yet.")
        return
    headings = ["position", "instant", "operation", "added", "removed", "rows", "bytes", "scope"]
    _print(page, headings, [_entry(entry) for entry in document["entries"]], folding=(7,), numbers=(0, 3, 4, 5, 6))


def show_markers(page: Console, document: MarkersDocument) -> None:
    rows = [(marker["path"], marker["io"]) for marker in document["markers"]]
    if rows:
        _print(page, ["data file", "io"], rows, folding=(0,))
    page.print(f"{len(rows):,} markers of instant {document['instant']}.")


def show_rollback(page: Console, document: RollbackDocument) -> None:
    _show_ended(page, document["ended"])


def show_clean(page: Console, document: CleanDocument) -> None:
    _show_ended(page, document["ended"])
    page.print(f"{document['fences_swept']:,} fences swept.")


def _show_ended(page: Console, ended: Sequence[EndedFields]) -> None:
    if not ended:
        page.print("No instant to end: no dead writer has left anything.")
        return
    rows = [(one["instant"], one["outcome"], f"{one['marked']:,}", f"{one['fences']:,}") for one in ended]
    _print(page, ["instant", "outcome", "marked files", "fences"], rows, numbers=(2, 3))


def _open_instant(found: OpenInstantFields) -> tuple[str, ...]:
    age = found["beat_age_s"]
    return (
        found["instant"],
        found["operation"],
        f"{found['host']} process {found['pid']}",
        found["writer"] if found["decision"] is None else f"{found['writer']}, {found['decision']} to be finished",
        "none" if age is None else f"{age:,.0f} s ago",
        found["marker_kind"],
    )


def _entry(entry: EntryFields) -> tuple[str, ...]:
    return (
        f"{entry['position']:,}",
        entry["instant"],
        entry["operation"],
        f"{entry['files_added']:,}",
        f"{entry['files_removed']:,}",
        f"{entry['rows']:,}",
        decimal(entry["bytes"]),
        _scope(entry["scope"]),
    )


def _scope(scope: ScopeFields | None) -> str:
    if scope is None:
        return "-"
    if scope["all"]:
        return "all"
    named, count = scope["partitions"][:SCOPE_SHOWN], len(scope["partitions"])
    rest = [f"{count - len(named):,} more"] if count > len(named) else []
    return ", ".join([*named, *rest]) or "nothing"


def _print(
    page: Console,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    folding: Sequence[int] = (),
    numbers: Sequence[int] = (),
    has_header: bool = True,
) -> None:
    """Only the ``folding`` columns go on in a further line where the terminal is narrow."""
    table = Table(box=None, show_header=has_header, pad_edge=False, padding=(0, 2, 0, 0))
    for index, heading in enumerate(headings):
        folds = index in folding
        table.add_column(
            heading,
            justify="right" if index in numbers else "left",
            overflow="fold" if folds else "ellipsis",
            no_wrap=not folds,
        )
    for row in rows:
        table.add_row(*map(_printable, row))
    page.print(table)
    page.print()


def _printable(text: str) -> str:
    """What would move the cursor or change colours stands as its escape."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
