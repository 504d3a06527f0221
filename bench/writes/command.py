"""Command line of the question ``writes``, and the options that questions with Spark share."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import click

from tallymark.backends.options import StorageOptions
from tallymark.bench.command import json_option, run_question, show_progress, storage_option, svg_option
from tallymark.bench.jars import java
from tallymark.bench.peers.writers import NAMES
from tallymark.bench.writes.case import Name, case

DEFAULT_CASES: tuple[Name, ...] = ("append", "dynamic-overwrite", "static-overwrite")
"""Small files take minutes per round and run only when they are named."""


def _pythons(_context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or name not in NAMES or not Path(path).is_file():
            raise click.BadParameter(f"{text!r}: give SIDE=PATH, a side and a Python to run it with", param=parameter)
        found[name] = path
    return found


python_option = click.option(
    "--python",
    "pythons",
    multiple=True,
    metavar="SIDE=PATH",
    callback=_pythons,
    help="Another Python for a side that needs another Spark; it must have Tallymark and PySpark.",
)


def check_spark() -> None:
    if find_spec("pyspark") is None:
        raise click.ClickException("this question runs Spark: pip install 'tallymark[pyspark]'")
    if java() is None:
        raise click.ClickException("this question runs Spark, which needs a Java: put one on PATH or set JAVA_HOME")


@click.command()
@click.option(
    "--url",
    "urls",
    multiple=True,
    metavar="URL",
    help="Write to this store, in a new folder there that is removed at the end; repeatable. Without it: "
    "the temporary directory, unless --s3-latency-ms is given.",
)
@storage_option
@click.option(
    "--s3-latency-ms",
    "latency_ms",
    type=click.FloatRange(min=0),
    metavar="MS",
    help="Write to the S3 stand-in, too, with this latency per request. At 30 a dynamic overwrite by renaming takes "
    "seconds per partition.",
)
@click.option(
    "--case",
    "names",
    multiple=True,
    type=click.Choice(get_args(Name)),
    help=f"Repeatable. [default: {', '.join(DEFAULT_CASES)}]",
)
@click.option("--side", "sides", multiple=True, type=click.Choice(NAMES), help="Repeatable. [default: all]")
@click.option(
    "--scale",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Factor of the rows; of small files, of the number of files.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=6,
    show_default=True,
    help="Measured writes of each side. Fewer than 6 do not give an interval of 95 %.",
)
@click.option("--warm-up", type=click.IntRange(min=0), default=2, show_default=True, help="Rounds before them.")
@click.option(
    "--codec",
    type=click.Choice(["zstd", "snappy", "none"]),
    default="zstd",
    show_default=True,
    help="Codec of all sides.",
)
@click.option("--cores", type=click.IntRange(min=1), help="Cores of each side's Spark. [default: this process's]")
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
    """Measure whole writes of a DataFrame, beside Spark's committers and other table formats."""
    from tallymark.backends.errors import TallymarkError
    from tallymark.bench.writes import places, question
    from tallymark.bench.writes.rounds import RoundMethod

    check_spark()
    cores = cores or len(os.sched_getaffinity(0))
    method = RoundMethod(rounds=rounds, warm_up=warm_up, scale=scale, codec=codec, cores=cores)
    try:
        asked = question.Asked(
            places=places.asked(urls, options, latency_ms),
            cases=[case(name, scale) for name in names or DEFAULT_CASES],
            sides=[name for name in NAMES if not sides or name in sides],
            method=method,
            pythons=pythons,
        )
    except TallymarkError as error:
        raise click.ClickException(" ".join(str(error).split())) from error
    found = question.tables(asked, show_progress)
    run_question("writes", str(method), method, found, json_path=json_path, svg_path=svg_path)
