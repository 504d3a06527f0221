"""``tallymark serve token``: the tokens by which drivers of other machines are served."""

from collections.abc import Sequence
from pathlib import Path

import click

from tallymark.cli.asking import failing_plainly

_ROLES = ("read", "write", "operate", "admin")

_tokens_option = click.option(
    "--tokens",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The file that the service is given by --tokens. It reads it again when it has changed.",
)


@click.group()
def token() -> None:
    """Make, list and revoke the tokens of drivers. The file has hashes of them only."""


@token.command()
@_tokens_option
@click.option("--role", type=click.Choice(_ROLES), default="write", show_default=True, help="What it allows.")
@click.option(
    "--table",
    "tables",
    multiple=True,
    required=True,
    metavar="PATTERN",
    help="Tables that it is for, such as 's3://lake/sales/*'; repeatable. * is any text.",
)
@click.option(
    "--days", type=click.FloatRange(min=0, min_open=True), help="How long it is valid; without it, permanently."
)
def add(tokens: Path, role: str, tables: Sequence[str], days: float | None) -> None:
    """Print a new token. It is shown once. Several are valid at a time: add one, hand it out, then revoke the other."""
    with failing_plainly(as_json=False):
        from tallymark.engine.serve.tokens import add_token

        click.echo(add_token(tokens, role, tables, valid_days=days))


@token.command(name="list")
@_tokens_option
def list_(tokens: Path) -> None:
    """Print id, role, end and tables of each token."""
    with failing_plainly(as_json=False):
        from tallymark.engine.serve.tokens import read_tokens

        for each in read_tokens(tokens):
            click.echo(f"{each.id}  {each.role:8}  {each.expires or 'never ends':32}  {' '.join(each.tables)}")


@token.command()
@_tokens_option
@click.argument("id_", metavar="ID")
def revoke(tokens: Path, id_: str) -> None:
    """Remove a token from the file: from then on it opens nothing. Jobs that run keep their keys."""
    with failing_plainly(as_json=False):
        from tallymark.engine.serve.tokens import revoke_token

        revoke_token(tokens, id_)
        click.echo(f"{id_} is revoked.")
