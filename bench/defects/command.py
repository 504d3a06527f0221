"""``python -m tallymark.bench defects``: what it takes. Nothing heavy is imported before it is needed."""

import json
from pathlib import Path

import click

from tallymark.bench.arguments import folder_option, json_option, python_option, tell

NAMES = (
    *("restart", "lost answer", "kills", "full storage", "slow instant"),
    *("partitions", "detector", "reads", "missing folder"),
)

KILLS = 50


@click.command()
@click.option("--trial", "names", multiple=True, type=click.Choice(NAMES), help="Repeatable. [default: all]")
@click.option(
    "--kills", type=click.IntRange(min=1), default=KILLS, show_default=True, help="Of each server, in the trial kills."
)
@click.option("--ours", is_flag=True, help="Our side only: nothing is fetched, and no Java is needed.")
@folder_option
@python_option
@json_option
def defects(
    names: tuple[str, ...],
    kills: int,
    ours: bool,
    folder: Path,
    pythons: dict[str, str],
    json_path: Path | None,
) -> None:
    """What becomes of acked markers when a server dies, an answer is lost, or storage refuses?"""
    from tallymark.backends.errors import TallymarkError
    from tallymark.bench.defects import report, run
    from tallymark.bench.report import WIDTH
    from tallymark.cli.page import console

    wanted = [name for name in NAMES if name in (names or NAMES)]
    try:
        answer = run.run(wanted, folder, kills=kills, pythons=pythons, hudi=not ours, tell=tell)
    except TallymarkError as error:
        raise click.ClickException(" ".join(str(error).split())) from error
    report.show(console(width=WIDTH), answer)
    if json_path:
        json_path.write_text(json.dumps(answer.document(), indent=1) + "\n")
