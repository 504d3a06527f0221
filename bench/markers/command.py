"""``python -m tallymark.bench markers``: what it takes. Nothing heavy is imported before it is needed."""

import json
from dataclasses import replace
from pathlib import Path

import click

from tallymark.backends.options import StorageOptions
from tallymark.bench.arguments import json_option, storage_option, svg_option, tell
from tallymark.bench.markers.parts import ALL, PARTS


@click.command()
@click.option(
    "--store",
    metavar="URL",
    help="Measure all on this store, in a new folder there that is removed at the end. Without it: all sides in "
    "the temporary directory, and the published table on S3 at a server of this harness.",
)
@storage_option
@click.option(
    "--latency-ms",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="What a request takes at the harness's server, without --store.",
)
@click.option(
    "--rate-limit",
    type=click.FloatRange(min=0),
    default=3500.0,
    show_default=True,
    help="Objects that it lets be put or deleted in a second; 0: all that come.",
)
@click.option("--part", "parts", multiple=True, type=click.Choice(ALL), help="Repeatable. [default: all but slow]")
@click.option("--markers", type=click.IntRange(min=1), help="Of the largest jobs. [default: 165000]")
@click.option("--pace-minutes", type=click.FloatRange(min=0.1), help="Of the part slow. [default: 10]")
@click.option("--quick", is_flag=True, help="A glance: seconds for a side, and jobs of 3,000 markers at most.")
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
    """How long does a marker take, and what does it cost, beside Hudi's own timeline server and beside none?"""
    from tallymark.backends.errors import TallymarkError
    from tallymark.bench.markers import plot, report, run
    from tallymark.bench.markers.effort import QUICK, Effort
    from tallymark.bench.markers.page import WIDTH
    from tallymark.cli.page import console

    effort = QUICK if quick else Effort()
    if markers is not None:
        effort = effort.up_to(markers)
    if pace_minutes is not None:
        effort = replace(effort, pace_minutes=pace_minutes)
    asked = run.Asked(
        parts=[name for name in ALL if name in (parts or PARTS)],
        effort=effort,
        store=store,
        options=options,
        latency_s=latency_ms / 1000,
        puts_per_s=rate_limit,
    )
    try:
        answer = run.run(asked, tell=tell)
    except TallymarkError as error:
        raise click.ClickException(" ".join(str(error).split())) from error
    report.show(console(width=WIDTH), answer)
    if json_path:
        json_path.write_text(json.dumps(answer.document(), indent=1) + "\n")
    if svg_path:
        svg_path.write_text(plot.draw(answer))
