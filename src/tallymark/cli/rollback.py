"""``tallymark rollback``: the end of instants whose writers are dead."""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tallymark.cli.asking import Place, answer, ask, at_a_url, json_keys
from tallymark.cli.page import print_table
from tallymark.engine.documents.rollback import EndedFields, RollbackDocument, end_instants
from tallymark.engine.documents.status import read_status

if TYPE_CHECKING:
    from rich.console import Console


@click.command(epilog=json_keys(RollbackDocument))
@at_a_url
@click.option("--instant", metavar="T", help="End this instant, even if its writer is alive; asks first.")
@click.option("--dry-run", is_flag=True, help="Show what would be ended; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def rollback(at: Place, instant: str | None, dry_run: bool, yes: bool) -> None:
    """End every instant whose writer is dead.

    Uncommitted instants are rolled back; committed ones are finished.
    """
    if instant is not None and not yes and not dry_run:
        _confirm(at, instant)
    answer(at, functools.partial(end_instants, instant=instant, dry_run=dry_run), show_rollback)


def _confirm(at: Place, instant: str) -> None:
    """Ask for confirmation, naming the writer to interrupt. An instant that is not open is refused by the rollback."""
    found = ask(at, read_status)
    for writer in found["open_instants"]:
        if writer["instant"] == instant:
            age = writer["beat_age_s"]
            heartbeat = "no heartbeat" if age is None else f"last heartbeat {age:,.0f} s ago"
            who = f"{writer['host']} process {writer['pid']} ({writer['writer']}, {heartbeat})"
            click.confirm(f"Instant {instant} is being written by {who}. Roll it back?", abort=True, err=True)


def show_rollback(page: "Console", document: RollbackDocument) -> None:
    if document["dry_run"]:
        page.print("Dry run: nothing has been changed. A rollback would do this:")
    show_ended(page, document["ended"])


def show_ended(page: "Console", ended: Sequence[EndedFields]) -> None:
    if not ended:
        page.print("No instant to end: no dead writer has left anything.")
        return
    rows = [(one["instant"], one["outcome"], f"{one['marked']:,}", f"{one['fences']:,}") for one in ended]
    print_table(page, ["instant", "outcome", "marked files", "fences"], rows, numbers=(2, 3))
