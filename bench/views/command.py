"""Command line of the question ``views``. Imports nothing heavy before it runs."""

from dataclasses import replace
from pathlib import Path

import click

from tallymark.bench.command import folder_option, json_option, run_question, show_progress, svg_option

KINDS = ("ours", "hudi", "delta", "listing")


@click.command()
@click.option(
    "--files",
    "counts",
    multiple=True,
    type=click.IntRange(min=100),
    metavar="N",
    help="Files of the table, in up to 10,000 partitions; repeatable. [default: 10000, 100000, 1000000]",
)
@click.option("--side", "kinds", multiple=True, type=click.Choice(KINDS), help="Repeatable. [default: all]")
@click.option("--seconds", type=click.FloatRange(min=1), help="Length of the load by many callers. [default: 20]")
@click.option("--quick", is_flag=True, help="Check that everything works: 1,000 and 3,000 files, seconds per side.")
@folder_option
@json_option
@svg_option
def views(
    counts: tuple[int, ...],
    kinds: tuple[str, ...],
    seconds: float | None,
    quick: bool,
    folder: Path,
    json_path: Path | None,
    svg_path: Path | None,
) -> None:
    """Measure how long it takes to know which files a partition contains."""
    from tallymark.bench.views import question
    from tallymark.bench.views.ground import Effort

    effort = question.QUICK if quick else Effort()
    if seconds is not None:
        effort = replace(effort, seconds=seconds)
    asked = question.Asked(
        files=sorted(counts) or (question.QUICK_FILES if quick else question.FILES),
        kinds=[kind for kind in KINDS if not kinds or kind in kinds],
        effort=effort,
        parent=folder,
    )
    found = question.tables(asked, show_progress)
    run_question("views", question.METHOD, effort, found, json_path=json_path, svg_path=svg_path)
