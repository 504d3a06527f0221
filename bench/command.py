"""Options and output that the questions share on the command line."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from tallymark.bench.results import WIDTH, Table, rich_table
from tallymark.bench.results import results as collect
from tallymark.cli import storage
from tallymark.cli.page import console


def _writable(_context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Refuse the path before the run, not after it."""
    if path is not None and (path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK)):
        raise click.BadParameter(f"{path} cannot be written", param=parameter)
    return path


def _or_temporary(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path:
    return path or Path(tempfile.gettempdir())


storage_option = click.option(
    "--storage",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    callback=storage.parse,
    help=f"Setting of the store that its URL does not contain; repeatable. KEY is one of {', '.join(storage.known())}.",
)

folder_option = click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    callback=_or_temporary,
    help="Write in a new folder here, which is removed at the end. [default: the temporary directory]",
)


def _path_option(flag: str, text: str) -> Callable[[Any], Any]:
    return click.option(
        flag, f"{flag[2:]}_path", type=click.Path(path_type=Path), callback=_writable, metavar="PATH", help=text
    )


json_option = _path_option("--json", "Write all rows to this file.")
svg_option = _path_option("--svg", "Draw the charts into this file (needs Matplotlib).")


def run_question(
    question: str,
    method: str,
    settings: object,
    tables: Iterable[Table],
    *,
    json_path: Path | None,
    svg_path: Path | None,
) -> None:
    """Measure, print the tables, and save what was requested."""
    from tallymark.backends.errors import TallymarkError

    try:
        found = collect(question, method, settings, tables)
        found.show(console(width=WIDTH))
        found.save(json_path, svg_path)
    except TallymarkError as error:
        raise click.ClickException(" ".join(str(error).split())) from error


def print_table(table: Table) -> None:
    """Print one table, for modules that are programs."""
    console(width=WIDTH).print(rich_table(table))


def show_progress(text: str) -> None:
    """Replace the last line of the terminal."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K{text}", nl=False, err=True)
