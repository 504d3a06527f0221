"""``tallymark checkpoint``: a checkpoint of the newest position."""

from typing import TYPE_CHECKING

import click

from tallymark.cli.asking import Place, answer, at_a_url, json_keys
from tallymark.engine.documents.checkpoint import CheckpointDocument, put_checkpoint
from tallymark.engine.jobs.result import shown_bytes

if TYPE_CHECKING:
    from rich.console import Console


@click.command(epilog=json_keys(CheckpointDocument))
@at_a_url
def checkpoint(at: Place) -> None:
    """Write a checkpoint, from which the log is read on.

    Jobs do so after a number of entries; this command does it for everything committed by now.
    """
    answer(at, put_checkpoint, show_checkpoint)


def show_checkpoint(page: "Console", document: CheckpointDocument) -> None:
    page.print(
        f"Position {document['position']:,}: {document['files']:,} files in {document['partitions']:,} partitions."
    )
    if not document["bytes_written"]:
        page.print("There was a checkpoint of it already.")
        return
    size, seconds = shown_bytes(document["bytes_written"]), document["seconds"]
    page.print(f"{document['parts_written']:,} of {document['parts']:,} parts written, {size}, in {seconds:,.1f} s.")
