"""``tallymark explain``: the fate of one file, and its cause."""

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

import click

from tallymark.cli.asking import Place, answer, at_a_url, json_keys
from tallymark.cli.document import document_of
from tallymark.cli.page import print_table
from tallymark.engine.jobs.result import shown_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from tallymark.engine.table import Table


class ExplainDocument(TypedDict):
    url: str
    path: str
    """Relative to ``url``."""
    fate: Literal[
        "live",
        "missing",
        "retained",
        "replaced",
        "fence",
        "left out",
        "rolled back",
        "uncommitted",
        "marked",
        "bookkeeping",
        "unknown",
    ]
    is_there: bool
    instant: str | None
    """The instant that has written it, or was to."""
    position: int | None
    """Position of the log entry that decided its fate."""
    rows: int | None
    bytes: int | None
    """By the log; null for a file that it does not name."""
    rewritten_bytes: int | None
    """Total size of the files that were rewritten on the way to it; likewise."""
    made_of: list[str]
    """The small file that was filled to make it; several where the log does not show which of them."""
    filled_into: list[str]
    """The file that contains its rows since it was small and was filled; likewise."""
    why: str
    next: str
    command: str | None
    """The command that does that now; null where nothing is to be done."""
    until: str | None
    """ISO 8601: time until which it remains at least, by the store's clock."""


@click.command(epilog=json_keys(ExplainDocument))
@at_a_url
@click.argument("file")
def explain(at: Place, file: str) -> None:
    """Explain why a file is kept, hidden or due for removal.

    FILE is a path below the table, a URL of it, or the bare name of a data file.
    """
    answer(at, functools.partial(explain_file, file=file), show_explain)


async def explain_file(table: "Table", *, file: str) -> ExplainDocument:
    return document_of(ExplainDocument, await table.explain(_as_seen_from_here(table.url, file)), url=table.url)


def _as_seen_from_here(url: str, file: str) -> str:
    """Return the file that a path means relative to the working directory, if it exists."""
    if url.startswith("file:") and Path(file).is_file():
        return str(Path(file).absolute())
    return file


def show_explain(page: "Console", document: ExplainDocument) -> None:
    facts = {
        "file": document["path"],
        "fate": document["fate"] if document["is_there"] else f"{document['fate']}, not there",
        "instant": document["instant"],
        "position": None if document["position"] is None else f"{document['position']:,}",
        "size": _size(document),
        "why": document["why"],
        "next": document["next"],
        "now": document["command"],
    }
    rows = [(name, value) for name, value in facts.items() if value is not None]
    print_table(page, ["", ""], rows, folding=(1,), has_header=False)


def _size(document: ExplainDocument) -> str | None:
    if document["rows"] is None or document["bytes"] is None:
        return None
    return f"{document['rows']:,} rows, {shown_bytes(document['bytes'])}"
