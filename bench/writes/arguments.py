"""What the questions that run Spark have in common on the command line."""

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from tallymark.bench.jars import java
from tallymark.bench.peers.writers import NAMES


def _pythons(_context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or name not in NAMES or not Path(path).is_file():
            raise click.BadParameter(f"{text!r}: give SIDE=PATH, a side and a Python to run it with", param=parameter)
        found[name] = path
    return found


python_option = click.option(
    "--python",
    "pythons",
    multiple=True,
    metavar="SIDE=PATH",
    callback=_pythons,
    help="Another Python for a side that needs another Spark; it has to have Tallymark and PySpark.",
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
