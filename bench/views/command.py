"""``python -m tallymark.bench views``: what it takes. Nothing heavy is imported before it is needed."""

import functools
import json
from pathlib import Path

import click

from tallymark.bench.arguments import folder_option, json_option, svg_option, tell
from tallymark.bench.views.kinds import KINDS


@click.command()
@click.option(
    "--files",
    "counts",
    multiple=True,
    type=click.IntRange(min=100),
    metavar="N",
    help="Of the table, in up to 10,000 partitions; repeatable. [default: 10000, 100000, 1000000]",
)
@click.option(
    "--side", "kinds", multiple=True, type=click.Choice(KINDS), help="Who answers; repeatable. [default: all]"
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    help="How long many callers ask each side. [default: 20]",
)
@click.option("--quick", is_flag=True, help="A glance: 1,000 and 3,000 files, 200 look-ups/s, seconds for a side.")
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
    """How long until somebody knows which files a partition holds, and what does it take to keep knowing?"""
    import anyio

    from tallymark.backends.errors import TallymarkError
    from tallymark.bench.report import WIDTH
    from tallymark.bench.views import plot, report, run
    from tallymark.bench.views.ground import Effort
    from tallymark.cli.page import console

    asked = run.Asked(
        files=sorted(counts) or (run.QUICK_FILES if quick else run.FILES),
        kinds=[name for name in KINDS if not kinds or name in kinds],
        effort=(run.QUICK if quick else Effort()).lasting(seconds),
        parent=folder,
    )
    try:
        answer = anyio.run(functools.partial(run.run, asked, tell=tell), backend="trio")
    except TallymarkError as error:
        raise click.ClickException(" ".join(str(error).split())) from error
    report.show(console(width=WIDTH), answer)
    if json_path:
        json_path.write_text(json.dumps(answer.document(), indent=1) + "\n")
    if svg_path:
        svg_path.write_text(plot.draw(answer))
