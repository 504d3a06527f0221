"""``tallymark accept-loss``: continue a table whose newest log entries are lost."""

from typing import TYPE_CHECKING, TypedDict

import click

from tallymark.cli.asking import Place, answer, at_a_url, json_keys
from tallymark.engine.documents.document import document_of

if TYPE_CHECKING:
    from rich.console import Console

    from tallymark.engine.table import Table


class AcceptedLossDocument(TypedDict):
    url: str
    position: int
    """Position at which the log ends."""
    instants: list[str]
    """Lost commits that the Hudi timeline showed."""
    files: list[str]
    """Data files of these commits, which were deleted."""
    missing: list[str]
    """Live files of the table that do not exist, since the lost commits had replaced them."""


@click.command("accept-loss", epilog=json_keys(AcceptedLossDocument))
@at_a_url
@click.option("--yes", is_flag=True, help="Do not ask.")
def accept_loss(at: Place, yes: bool) -> None:
    """Continue a table whose newest log entries are lost.

    The lost commits are removed permanently, with their data files. If there is a copy of the table's .hoodie folder,
    restore that instead.
    """
    if not yes:
        click.confirm(f"Delete what the lost commits of {at.url} have left?", abort=True, err=True)
    answer(at, accept, show_accepted)


async def accept(table: "Table") -> AcceptedLossDocument:
    return document_of(AcceptedLossDocument, await table.accept_loss(), url=table.url)


def show_accepted(page: "Console", document: AcceptedLossDocument) -> None:
    lost, files = len(document["instants"]), len(document["files"])
    page.print(f"The log ends at position {document['position']:,}. {lost:,} lost commits and {files:,} files removed.")
    for path in document["missing"]:
        page.print(f"Missing: {path}. Overwrite its partition.")
