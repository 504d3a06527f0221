"""``tallymark markers``: the markers of an open instant."""

import functools
from typing import TYPE_CHECKING

import click

from tallymark.cli.asking import Place, answer, at_a_url, json_keys
from tallymark.cli.page import print_table
from tallymark.cli.watch import watch_markers
from tallymark.engine.documents.document import keys
from tallymark.engine.documents.markers import MarkersDocument, read_markers
from tallymark.engine.documents.watch import WatchDocument

if TYPE_CHECKING:
    from rich.console import Console


@click.command(epilog=f"{json_keys(MarkersDocument)} With --watch as well, a line a look: {keys(WatchDocument)}.")
@at_a_url
@click.argument("instant", required=False)
@click.option("--watch", "is_watch", is_flag=True, help="Count them again and again, of INSTANT or of all open ones.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    metavar="S",
    help="Seconds between two looks: each costs some four small requests.",
)
def markers(at: Place, instant: str | None, is_watch: bool, every: float) -> None:
    """List the markers of an open instant.

    Each names a data file that may have been started. With --watch they are counted while the job runs, by the content
    of storage: until Ctrl-C, or until INSTANT is over.
    """
    if is_watch:
        watch_markers(at, instant, every)
        return
    if instant is None:
        raise click.UsageError("Missing argument 'INSTANT'; only --watch does without.")
    answer(at, functools.partial(read_markers, instant=instant), show_markers)


def show_markers(page: "Console", document: MarkersDocument) -> None:
    rows = [(marker["path"], marker["io"]) for marker in document["markers"]]
    if rows:
        print_table(page, ["data file", "io"], rows, folding=(0,))
    page.print(f"{len(rows):,} markers of instant {document['instant']}.")
