"""``tallymark clean``: deletion of replaced files whose retention is over."""

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from tallymark.cli.asking import Place, ask, at_a_url, json_keys, show
from tallymark.cli.rollback import show_ended
from tallymark.engine.documents.clean import CleanDocument, clean_table
from tallymark.engine.documents.timeline import NAMES_SHOWN
from tallymark.engine.jobs.result import shown_bytes

if TYPE_CHECKING:
    from rich.console import Console


@click.command(epilog=json_keys(CleanDocument))
@at_a_url
@click.option("--dry-run", is_flag=True, help="Show what would go; change nothing.")
@click.option(
    "--retain-hours",
    type=click.FloatRange(min=0),
    metavar="H",
    help="Keep replaced files for so many hours, this once; else as the table was made.",
)
def clean(at: Place, dry_run: bool, retain_hours: float | None) -> None:
    """Roll back dead writers, then delete expired files.

    Expired are replaced files of a table with readers="table" after their retention, and on object stores the fences of
    lost task attempts.
    """
    with shown_deletes() as progress:
        found = ask(at, functools.partial(clean_table, retain_hours=retain_hours, dry_run=dry_run, progress=progress))
    show(at, found, show_clean)


@contextmanager
def shown_deletes() -> Iterator[Callable[[int, int], None] | None]:
    """Yield a callback for deleted files within the block; None where stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("deleting"), BarColumn(), MofNCompleteColumn(), TextColumn("files"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as page:
        line = page.add_task("deleting", total=None, visible=False)
        yield lambda done, total: page.update(line, completed=done, total=total, visible=True)


def show_clean(page: "Console", document: CleanDocument) -> None:
    if document["dry_run"]:
        page.print("Dry run: nothing has been changed. A clean would do this:")
    show_ended(page, document["ended"])
    partitions = document["partitions"]
    size = f"{document['files']:,} replaced files, {shown_bytes(document['bytes'])}, in {len(partitions):,} partitions"
    page.print(f"{size}{_first(partitions)}.")
    if document["readers"]:
        page.print(f"{document['held_files']:,} more stay for readers: {_readers(document)}.")
    page.print(f"{document['fences_swept']:,} fences.")


def _readers(document: CleanDocument) -> str:
    return ", ".join(
        f"process {reader['pid']} on {reader['host']} from position {reader['position']} on"
        for reader in document["readers"]
    )


def _first(partitions: Sequence[str]) -> str:
    named = ", ".join(filter(None, partitions[:NAMES_SHOWN]))
    more = f" and {len(partitions) - NAMES_SHOWN:,} more" if len(partitions) > NAMES_SHOWN else ""
    return f": {named}{more}" if named else ""
