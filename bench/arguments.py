"""What questions have in common on the command line."""

import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import click

from tallymark.bench.jars import java
from tallymark.bench.peers.writers import NAMES
from tallymark.cli import storage


def _file(_context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Refused before the run and not after it."""
    if path is not None and (path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK)):
        raise click.BadParameter(f"{path} cannot be written", param=parameter)
    return path


def _or_temporary(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path:
    return path or Path(tempfile.gettempdir())


def _pythons(_context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or name not in NAMES or not Path(path).is_file():
            raise click.BadParameter(f"{text!r}: give SIDE=PATH, a side and a Python to run it with", param=parameter)
        found[name] = path
    return found


storage_option = click.option(
    "--storage",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    callback=storage.parse,
    help=f"What the URLs do not say of the store; repeatable. KEY is one of {', '.join(storage.known())}.",
)

folder_option = click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    callback=_or_temporary,
    help="Where to write, in a new folder that is removed at the end. [default: the temporary directory]",
)

python_option = click.option(
    "--python",
    "pythons",
    multiple=True,
    metavar="SIDE=PATH",
    callback=_pythons,
    help="Another Python for a side that needs another Spark; it has to have Tallymark and PySpark.",
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


def check_spark() -> None:
    if find_spec("pyspark") is None:
        raise click.ClickException("this question runs Spark: pip install 'tallymark[pyspark]'")
    if java() is None:
        raise click.ClickException("this question runs Spark, which needs a Java: put one on PATH or set JAVA_HOME")


def tell(text: str) -> None:
    """A line for whoever sits at the terminal."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K{text}", nl=False, err=True)
