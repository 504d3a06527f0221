"""``python -m tallymark.bench writes``: what it takes. Nothing heavy is imported before it is needed."""

import json
from pathlib import Path
from typing import get_args

import click

from tallymark.backends.options import StorageOptions
from tallymark.bench.arguments import check_spark, json_option, python_option, storage_option, svg_option, tell
from tallymark.bench.peers.writers import NAMES
from tallymark.bench.writes.case import Name, case

DEFAULT_CASES: tuple[Name, ...] = ("append", "dynamic-overwrite", "static-overwrite")
"""Small files take minutes a round; they are asked for by name."""


@click.command()
@click.option(
    "--url",
    "urls",
    multiple=True,
    metavar="URL",
    help="Write to this store, in a new folder there that is removed at the end; may be given several times. Without "
    "it: the temporary directory, unless --s3-latency-ms asks for another place.",
)
@storage_option
@click.option(
    "--s3-latency-ms",
    "latency_ms",
    type=click.FloatRange(min=0),
    metavar="MS",
    help="Write to S3, too, at a server of this harness, which waits so long before each answer. Near 30 a dynamic "
    "overwrite by renaming takes seconds for each partition.",
)
@click.option(
    "--case",
    "names",
    multiple=True,
    type=click.Choice(get_args(Name)),
    help=f"What is written; repeatable. [default: {', '.join(DEFAULT_CASES)}]",
)
@click.option("--side", "sides", multiple=True, type=click.Choice(NAMES), help="Who writes; repeatable. [default: all]")
@click.option(
    "--scale",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Times as many rows (of small files: times as many files).",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=6,
    show_default=True,
    help="Writes of each side that count. Fewer than 6 do not give an interval of 95 %.",
)
@click.option("--warm-up", type=click.IntRange(min=0), default=2, show_default=True, help="Rounds before, not counted.")
@click.option(
    "--codec", type=click.Choice(["zstd", "snappy", "none"]), default="zstd", show_default=True, help="Of all sides."
)
@click.option("--cores", type=click.IntRange(min=1), help="Of each side's Spark. [default: this process's]")
@python_option
@json_option
@svg_option
def writes(
    urls: tuple[str, ...],
    options: StorageOptions,
    latency_ms: float | None,
    names: tuple[Name, ...],
    sides: tuple[str, ...],
    scale: float,
    rounds: int,
    warm_up: int,
    codec: str,
    cores: int | None,
    pythons: dict[str, str],
    json_path: Path | None,
    svg_path: Path | None,
) -> None:
    """What does a whole write of a DataFrame take, beside Spark's committers and other table formats?"""
    from tallymark.backends.errors import TallymarkError
    from tallymark.bench.report import WIDTH
    from tallymark.bench.writes import places, plot, report, run
    from tallymark.bench.writes.rounds import RoundMethod
    from tallymark.cli.page import console

    check_spark()
    method = RoundMethod(rounds=rounds, warm_up=warm_up, scale=scale, codec=codec, cores=cores or run.cores())
    try:
        asked = run.Asked(
            places=places.asked(urls, options, latency_ms),
            cases=[case(name, scale) for name in names or DEFAULT_CASES],
            sides=[name for name in NAMES if not sides or name in sides],
            method=method,
            pythons=pythons,
        )
        answer = run.run(asked, tell=tell)
    except TallymarkError as error:
        raise click.ClickException(" ".join(str(error).split())) from error
    report.show(console(width=WIDTH), answer)
    if json_path:
        json_path.write_text(json.dumps(answer.document(), indent=1) + "\n")
    if svg_path:
        svg_path.write_text(plot.draw(answer))
