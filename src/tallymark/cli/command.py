"""The commands: what they take, how they ask and how they end. Nothing heavy is imported before it is needed."""

import functools
import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, TypeVar

import click

from tallymark import __version__
from tallymark.backends.errors import TallymarkError
from tallymark.cli import document

if TYPE_CHECKING:
    from rich.console import Console

    from tallymark.engine.writes import Table

D = TypeVar("D", bound=Mapping[str, object])

_url = click.argument("url")
_as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")


def _json_keys(kind: type) -> str:
    return f"With --json: {document.keys(kind)}. Sizes are bytes, ages seconds, instants UTC."


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tallymark", message="%(prog)s %(version)s")
def main() -> None:
    """Look at tables that Tallymark writes, and put them in order.

    URL is a table's base path: a directory, or a URL such as file:///data/flights. The exit code is 0 only on success,
    1 if the command failed, 2 if it was called wrongly. A failed command says why in one line on stderr; with --json a
    JSON object {"error": {"type", "message"}} follows.
    """


@main.command(epilog=_json_keys(document.StatusDocument))
@_url
@_as_json
def status(url: str, as_json: bool) -> None:
    """Show what a table holds, and who is writing it."""
    from tallymark.cli.tables import show_status

    _answer(url, document.status, show_status, as_json=as_json)


@main.command(epilog=_json_keys(document.TimelineDocument))
@_url
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the N newest entries.")
@_as_json
def timeline(url: str, last: int | None, as_json: bool) -> None:
    """List commits and rollbacks, oldest first."""
    from tallymark.cli.tables import show_timeline

    _answer(url, functools.partial(document.timeline, last=last), show_timeline, as_json=as_json)


@main.command(epilog=_json_keys(document.MarkersDocument))
@_url
@click.argument("instant")
@_as_json
def markers(url: str, instant: str, as_json: bool) -> None:
    """List the markers of an open instant.

    Each names a data file that may have been begun.
    """
    from tallymark.cli.tables import show_markers

    _answer(url, functools.partial(document.markers, instant=instant), show_markers, as_json=as_json)


@main.command(epilog=_json_keys(document.RollbackDocument))
@_url
@click.option("--instant", metavar="T", help="End this instant, even if its writer is alive; asks first.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_as_json
def rollback(url: str, instant: str | None, yes: bool, as_json: bool) -> None:
    """End every instant whose writer is dead.

    What had not been committed goes away; what had been is finished.
    """
    from tallymark.cli.tables import show_rollback

    if instant is not None and not yes:
        _confirm(url, instant, as_json=as_json)
    _answer(url, functools.partial(document.rollback, instant=instant), show_rollback, as_json=as_json)


@main.command(epilog=_json_keys(document.CleanDocument))
@_url
@_as_json
def clean(url: str, as_json: bool) -> None:
    """Do as rollback does, then remove what was kept for long enough."""
    from tallymark.cli.tables import show_clean

    _answer(url, document.clean, show_clean, as_json=as_json)


def _answer(
    url: str, ask: Callable[["Table"], Awaitable[D]], show: Callable[["Console", D], None], *, as_json: bool
) -> None:
    answer = _ask(url, ask, as_json=as_json)
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    from tallymark.cli.tables import console

    show(console(), answer)


def _ask(url: str, ask: Callable[["Table"], Awaitable[D]], *, as_json: bool) -> D:
    import anyio

    with _failing_plainly(as_json=as_json):
        from tallymark.engine.writes import open_table

        return anyio.run(ask, open_table(url), backend="trio")


@contextmanager
def _failing_plainly(*, as_json: bool) -> Iterator[None]:
    """An error of the library's is an answer, not a fault: one line instead of a traceback."""
    try:
        yield
    except TallymarkError as error:
        _fail(error, as_json=as_json)


def _fail(error: TallymarkError, *, as_json: bool) -> NoReturn:
    click.echo(f"tallymark: {' '.join(str(error).split())}", err=True)
    if as_json:
        click.echo(json.dumps(document.failure(error)), err=True)
    sys.exit(1)


def _confirm(url: str, instant: str, *, as_json: bool) -> None:
    """Say who would be interrupted, and ask. An instant that is not open is left for the rollback to refuse."""
    found = _ask(url, document.status, as_json=as_json)
    for writer in found["open_instants"]:
        if writer["instant"] == instant:
            age = writer["beat_age_s"]
            beat = "no beat" if age is None else f"last beat {age:,.0f} s ago"
            who = f"{writer['host']} process {writer['pid']} ({writer['writer']}, {beat})"
            click.confirm(f"Instant {instant} is being written by {who}. Roll it back?", abort=True, err=True)
