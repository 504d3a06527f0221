"""Command line of the question ``killed``."""

from pathlib import Path

import click

from tallymark.bench.command import folder_option, json_option, run_question, show_progress
from tallymark.bench.writes.command import check_spark, python_option

SIDES = ("ours", "v1", "v2", "delta", "hudi")


@click.command()
@click.option("--side", "sides", multiple=True, type=click.Choice(SIDES), help="Repeatable. [default: all]")
@folder_option
@python_option
@json_option
def killed(sides: tuple[str, ...], folder: Path, pythons: dict[str, str], json_path: Path | None) -> None:
    """Find what remains when an executor, or a whole job, is killed in the middle of a write."""
    from tallymark.bench.killed import question

    check_spark()
    wanted = [name for name in SIDES if not sides or name in sides]
    found = question.tables(wanted, folder, pythons, show_progress)
    run_question("killed", question.METHOD, None, found, json_path=json_path, svg_path=None)
