"""``tallymark report``: the page of a table as one file."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tallymark.backends.options import StorageOptions
from tallymark.cli.asking import Place, ask, failing_plainly
from tallymark.cli.storage import storage_option

if TYPE_CHECKING:
    from tallymark.engine.table import Table


@click.command()
@click.argument("url")
@storage_option("the URL does")
@click.option("--html", "file", required=True, metavar="FILE", help="The file to write; - is stdout.")
def report(url: str, options: StorageOptions, file: str) -> None:
    """Write a table's findings, timeline and file sizes as one HTML file.

    The file needs no service, no script and no other file. An existing FILE is replaced once the new one is complete.
    """
    html = ask(Place(url, options, as_json=False), _render)
    if file == "-":
        click.echo(html)
        return
    with failing_plainly(as_json=False):
        _replace(Path(file), f"{html}\n".encode())


async def _render(table: "Table") -> str:
    from tallymark.engine.serve.page.report import render_report

    return await render_report(table)


def _replace(path: Path, data: bytes) -> None:
    from tallymark.engine.errors import InvalidRequest
    from tallymark.engine.serve.private_file import write_unfinished

    try:
        write_unfinished(path, data, like=path.stat() if path.exists() else None).replace(path)
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be written: {error}") from error
