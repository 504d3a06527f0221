"""``tallymark checkpoint``: a checkpoint of the newest position."""

from typing import TYPE_CHECKING, TypedDict

import click

from tallymark.cli.asking import Place, answer, at_a_url, json_keys
from tallymark.cli.document import document_of
from tallymark.engine.jobs.result import shown_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from tallymark.engine.table import Table


class CheckpointDocument(TypedDict):
    url: str
    position: int
    """Position of the log from which readers of the checkpoint start."""
    files: int
    partitions: int
    """Partitions that contain files."""
    parts: int
    parts_written: int
    """Of the parts, those that were written; the others are those of the checkpoint before. 0 where one of this
    position existed.
    """
    bytes_written: int
    seconds: float


@click.command(epilog=json_keys(CheckpointDocument))
@at_a_url
def checkpoint(at: Place) -> None:
    """Write a checkpoint, from which the log is read on.

    Jobs do so after a number of entries; this command does it for everything committed by now.
    """
    answer(at, put_checkpoint, show_checkpoint)


async def put_checkpoint(table: "Table") -> CheckpointDocument:
    return document_of(CheckpointDocument, await table.checkpoint(), url=table.url)


def show_checkpoint(page: "Console", document: CheckpointDocument) -> None:
    page.print(
        f"Position {document['position']:,}: {document['files']:,} files in {document['partitions']:,} partitions."
    )
    if not document["bytes_written"]:
        page.print("There was a checkpoint of it already.")
        return
    size, seconds = shown_bytes(document["bytes_written"]), document["seconds"]
    page.print(f"{document['parts_written']:,} of {document['parts']:,} parts written, {size}, in {seconds:,.1f} s.")
