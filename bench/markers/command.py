"""Command line of the question ``markers``. Imports nothing heavy before it runs."""

from dataclasses import replace
from pathlib import Path

import click

from tallymark.backends.options import StorageOptions
from tallymark.bench.command import json_option, run_question, show_progress, storage_option, svg_option
from tallymark.bench.markers.parts import PARTS


@click.command()
@click.option(
    "--store",
    metavar="URL",
    help="Measure everything on this store, in a new folder that is removed at the end. Without it: all sides in the "
    "temporary directory, and whole jobs on the S3 stand-in.",
)
@storage_option
@click.option(
    "--latency-ms",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Latency per request of the S3 stand-in, without --store.",
)
@click.option(
    "--rate-limit",
    type=click.FloatRange(min=0),
    default=3500.0,
    show_default=True,
    help="Objects that can be put or deleted there per second; 0: any number.",
)
@click.option(
    "--part", "parts", multiple=True, type=click.Choice((*PARTS, "slow")), help="Repeatable. [default: all but slow]"
)
@click.option("--markers", type=click.IntRange(min=1), help="Markers of the largest jobs. [default: 165000]")
@click.option("--pace-minutes", type=click.FloatRange(min=0.1), help="Length of the part slow. [default: 10]")
@click.option("--quick", is_flag=True, help="Check that everything works: seconds per side, jobs of 3,000 markers.")
@json_option
@svg_option
def markers(
    store: str | None,
    options: StorageOptions,
    latency_ms: float,
    rate_limit: float,
    parts: tuple[str, ...],
    markers: int | None,
    pace_minutes: float | None,
    quick: bool,
    json_path: Path | None,
    svg_path: Path | None,
) -> None:
    """Measure how long a marker takes and what it costs, beside Hudi's timeline server."""
    from tallymark.bench.markers import question

    effort = question.QUICK if quick else question.Effort()
    if markers is not None:
        effort = effort.up_to(markers)
    if pace_minutes is not None:
        effort = replace(effort, pace_minutes=pace_minutes)
    asked = question.Asked(
        parts=parts or PARTS,
        effort=effort,
        store=store,
        options=options,
        latency_s=latency_ms / 1000,
        puts_per_s=rate_limit,
    )
    found = question.tables(asked, show_progress)
    run_question("markers", question.METHOD, effort, found, json_path=json_path, svg_path=svg_path)
