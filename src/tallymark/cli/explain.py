"""``tallymark explain``: the fate of one file, and its cause."""

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tallymark.cli.asking import Place, answer, at_a_url, json_keys
from tallymark.cli.page import print_table
from tallymark.engine.documents.explain import ExplainDocument, explain_document
from tallymark.engine.jobs.result import shown_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from tallymark.engine.table import Table


@click.command(epilog=json_keys(ExplainDocument))
@at_a_url
@click.argument("file")
def explain(at: Place, file: str) -> None:
    """Explain why a file is kept, hidden or due for removal.

    FILE is a path below the table, a URL of it, or the bare name of a data file.
    """
    answer(at, functools.partial(explain_file, file=file), show_explain)


async def explain_file(table: "Table", *, file: str) -> ExplainDocument:
    return await explain_document(table, _as_seen_from_here(table.url, file))


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
