"""Common parts of the commands: the URL, the request to the table, and the exit."""

import functools
import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeVar

import click

from tallymark.backends.errors import TallymarkError
from tallymark.backends.options import StorageOptions
from tallymark.cli.storage import storage_option
from tallymark.engine.documents import document

if TYPE_CHECKING:
    from rich.console import Console

    from tallymark.engine.table import Table

D = TypeVar("D", bound=Mapping[str, object])
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """The table of a command, and the form of its output: arguments of every command."""

    url: str
    options: StorageOptions
    as_json: bool


def at_a_url(command: Callable[..., None]) -> Callable[..., None]:
    """Give the command its ``Place``: URL, ``--storage`` and ``--json``."""

    @click.argument("url")
    @storage_option("the URL does")
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
    @functools.wraps(command)
    def run(url: str, options: StorageOptions, as_json: bool, **others: object) -> None:
        command(Place(url, options, as_json), **others)

    return run


def json_keys(kind: type) -> str:
    return f"With --json: {document.keys(kind)}. Sizes are bytes, ages seconds, instants UTC."


def answer(at: Place, question: Callable[["Table"], Awaitable[D]], page: Callable[["Console", D], None]) -> None:
    show(at, ask(at, question), page)


def ask(at: Place, question: Callable[["Table"], Awaitable[T]]) -> T:
    import anyio

    with failing_plainly(as_json=at.as_json):
        from tallymark.engine.table import open_table

        return anyio.run(question, open_table(at.url, options=at.options), backend="trio")


def show(at: Place, found: D, page: Callable[["Console", D], None]) -> None:
    if at.as_json:
        click.echo(json.dumps(found, indent=2))
        return
    from tallymark.cli.page import console

    page(console(), found)


@contextmanager
def failing_plainly(*, as_json: bool) -> Iterator[None]:
    """Print an error of the library as one line, without a traceback."""
    try:
        yield
    except TallymarkError as error:
        _fail(error, as_json=as_json)


def _fail(error: TallymarkError, *, as_json: bool) -> NoReturn:
    click.echo(f"tallymark: {' '.join(str(error).split())}", err=True)
    if as_json:
        click.echo(json.dumps(document.failure(error)), err=True)
    sys.exit(1)
