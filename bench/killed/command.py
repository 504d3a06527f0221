"""``python -m tallymark.bench killed``: what it takes. Nothing heavy is imported before it is needed."""

import json
from pathlib import Path

import click

from tallymark.bench.arguments import check_spark, folder_option, json_option, python_option, tell
from tallymark.bench.peers.writers import NAMES

DEFAULT_SIDES = ("ours", "v1", "v2", "delta", "hudi")


@click.command()
@click.option(
    "--side", "sides", multiple=True, type=click.Choice(DEFAULT_SIDES), help="Who writes; repeatable. [default: all]"
)
@folder_option
@python_option
@json_option
def killed(sides: tuple[str, ...], folder: Path, pythons: dict[str, str], json_path: Path | None) -> None:
    """What is left behind when an executor, or a whole job, is killed in the middle of a write?"""
    from tallymark.backends.errors import TallymarkError
    from tallymark.bench.killed import report, run
    from tallymark.bench.report import WIDTH
    from tallymark.cli.page import console

    check_spark()
    wanted = [name for name in NAMES if name in (sides or DEFAULT_SIDES)]
    try:
        answer = run.run(wanted, folder, pythons, tell=tell)
    except TallymarkError as error:
        raise click.ClickException(" ".join(str(error).split())) from error
    report.show(console(width=WIDTH), answer)
    if json_path:
        json_path.write_text(json.dumps(answer.document(), indent=1) + "\n")
