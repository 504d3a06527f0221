"""The commands that look before somebody leaps: they tell, and change nothing."""

import functools

import click

from tallymark.cli import explain as explain_of
from tallymark.cli import files as files_of
from tallymark.cli.asking import Place, answer, at_a_url, json_keys


@click.command(epilog=json_keys(files_of.FilesDocument))
@at_a_url
@click.option("--partition", default="", metavar="PATH", help="Only what lies below it, such as year=2013.")
@click.option("--small-bytes", type=click.IntRange(min=0), metavar="N", help="Files below N bytes are small [100 MiB].")
def files(at: Place, partition: str, small_bytes: int | None) -> None:
    """Show how large a table's files are, and where the small ones lie."""
    from tallymark.cli.files_page import show_files

    answer(at, functools.partial(files_of.files, partition=partition, small_below=small_bytes), show_files)


@click.command(epilog=json_keys(explain_of.ExplainDocument))
@at_a_url
@click.argument("file")
def explain(at: Place, file: str) -> None:
    """Say why a file is kept, hidden or due for removal.

    FILE is a path below the table, a URL of the same, or the bare name of a data file.
    """
    from tallymark.cli.explain_page import show_explain

    answer(at, functools.partial(explain_of.explain, file=file), show_explain)
