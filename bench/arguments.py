"""What every question takes on the command line."""

import os
from pathlib import Path

import click

from tallymark.cli import storage


def _file(_context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Refused before the run and not after it."""
    if path is not None and (path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK)):
        raise click.BadParameter(f"{path} cannot be written", param=parameter)
    return path


storage_option = click.option(
    "--storage",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    callback=storage.parse,
    help=f"What the URLs do not say of the store; repeatable. KEY is one of {', '.join(storage.known())}.",
)

json_option = click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path),
    callback=_file,
    metavar="PATH",
    help="Write all samples and figures to this file.",
)

svg_option = click.option(
    "--svg",
    "svg_path",
    type=click.Path(path_type=Path),
    callback=_file,
    metavar="PATH",
    help="Draw them into this file.",
)
