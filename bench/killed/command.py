"""``python -m tallymark.bench killed``: what it takes. Nothing heavy is imported before it is needed."""

import json
import tempfile
from pathlib import Path

import click

from tallymark.bench.arguments import json_option
from tallymark.bench.peers.writers import NAMES
from tallymark.bench.writes.arguments import check_spark, python_option, tell

DEFAULT_SIDES = ("ours", "v1", "v2", "delta", "hudi")


@click.command()
@click.option(
    "--side", "sides", multiple=True, type=click.Choice(DEFAULT_SIDES), help="Who writes; repeatable. [default: all]"
)
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where to write, in a new folder that is removed at the end. [default: the temporary directory]",
)
@python_option
@json_option
def killed(sides: tuple[str, ...], folder: Path | None, pythons: dict[str, str], json_path: Path | None) -> None:
    """What is left behind when an executor, or a whole job, is killed in the middle of a write?"""
    from tallymark.backends.errors import TallymarkError
    from tallymark.bench.killed import report, run
    from tallymark.bench.report import WIDTH
    from tallymark.cli.page import console

    check_spark()
    wanted = [name for name in NAMES if name in (sides or DEFAULT_SIDES)]
    try:
        answer = run.run(wanted, folder or Path(tempfile.gettempdir()), pythons, tell=tell)
    except TallymarkError as error:
        raise click.ClickException(" ".join(str(error).split())) from error
    report.show(console(width=WIDTH), answer)
    if json_path:
        json_path.write_text(json.dumps(answer.document(), indent=1) + "\n")
