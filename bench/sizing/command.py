"""``python -m tallymark.bench sizing``: what it takes. Nothing heavy is imported before it is needed."""

import json
import os
from pathlib import Path
from typing import get_args

import click

from tallymark.bench.arguments import check_spark, folder_option, json_option, python_option, svg_option, tell
from tallymark.bench.sizing.written.case import Name, case
from tallymark.bench.sizing.written.sides import NAMES, SIDES


@click.command()
@click.option(
    "--plans-only",
    is_flag=True,
    help="Only what follows from plans, in arithmetic: half a minute, and neither Spark nor a Java.",
)
@click.option(
    "--quick", is_flag=True, help="Of the arithmetic, a twentieth of the appends and of the files to plan by."
)
@click.option(
    "--case",
    "names",
    multiple=True,
    type=click.Choice(get_args(Name)),
    help="Shape to write; repeatable. [default: all]",
)
@click.option("--side", "sides", multiple=True, type=click.Choice(NAMES), help="Who writes; repeatable. [default: all]")
@click.option(
    "--scale",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Times as many rows in what is written, and files as many times as large.",
)
@click.option("--cores", type=click.IntRange(min=1), help="Of each writer's Spark. [default: this process's]")
@folder_option
@python_option
@json_option
@svg_option
def sizing(
    plans_only: bool,
    quick: bool,
    names: tuple[Name, ...],
    sides: tuple[str, ...],
    scale: float,
    cores: int | None,
    folder: Path,
    pythons: dict[str, str],
    json_path: Path | None,
    svg_path: Path | None,
) -> None:
    """How large do files become at write time, and what is rewritten for it?"""
    from tallymark.backends.errors import TallymarkError
    from tallymark.bench.report import WIDTH
    from tallymark.bench.sizing import plot, report, run
    from tallymark.bench.sizing.written.run import Asked
    from tallymark.cli.page import console

    wanted = None
    if not plans_only:
        check_spark()
        wanted = Asked(
            cases=[case(name, scale) for name in names or get_args(Name)],
            sides=[side for side in SIDES if not sides or side.name in sides],
            cores=cores or len(os.sched_getaffinity(0)),
            pythons=pythons,
            parent=folder,
        )
    arithmetic, times = (0.05, run.TIMES_QUICK) if quick else (1.0, run.TIMES)
    try:
        answer = run.run(scale=arithmetic, times=times, written=wanted, tell=tell)
    except TallymarkError as error:
        raise click.ClickException(" ".join(str(error).split())) from error
    report.show(console(width=WIDTH), answer)
    if json_path:
        json_path.write_text(json.dumps(answer.document(), indent=1) + "\n")
    if svg_path:
        svg_path.write_text(plot.draw(answer))
