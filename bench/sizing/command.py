"""Command line of the question ``sizing``."""

import os
from pathlib import Path
from typing import get_args

import click

from tallymark.bench.command import folder_option, json_option, run_question, show_progress, svg_option
from tallymark.bench.sizing.written import NAMES, SIDES, Asked
from tallymark.bench.sizing.written_case import Name, case
from tallymark.bench.writes.command import check_spark, python_option


@click.command()
@click.option(
    "--plans-only",
    is_flag=True,
    help="Only plans, in arithmetic: half a minute, without Spark and Java.",
)
@click.option("--quick", is_flag=True, help="Check that plans work: a twentieth of the appends and of the files.")
@click.option(
    "--case",
    "names",
    multiple=True,
    type=click.Choice(get_args(Name)),
    help="Shape to write; repeatable. [default: all]",
)
@click.option("--side", "sides", multiple=True, type=click.Choice(NAMES), help="Repeatable. [default: all]")
@click.option(
    "--scale",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Factor of the rows that are written, and of the size of files.",
)
@click.option("--cores", type=click.IntRange(min=1), help="Cores of each writer's Spark. [default: this process's]")
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
    """Measure how large files become at write time, and what is rewritten for it."""
    from tallymark.bench.sizing import question

    asked = None
    if not plans_only:
        check_spark()
        asked = Asked(
            cases=[case(name, scale) for name in names or get_args(Name)],
            sides=[side for side in SIDES if not sides or side.name in sides],
            cores=cores or len(os.sched_getaffinity(0)),
            pythons=pythons,
            parent=folder,
        )
    arithmetic, times = (0.05, question.TIMES_QUICK) if quick else (1.0, question.TIMES)
    found = question.tables(show_progress, scale=arithmetic, times=times, asked=asked)
    run_question("sizing", question.METHOD, None, found, json_path=json_path, svg_path=svg_path)
