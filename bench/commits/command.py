"""Command line of the question ``commits``. Imports nothing heavy before it runs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from tallymark.bench.command import folder_option, json_option, run_question, show_progress, svg_option

PARTS = ("one-append", "writers", "one-table", "broker", "stream", "day")
SIDES = ("ours", "delta", "delta-synced", "iceberg", "floor")
PLACES = ("local", "s3")


@click.command()
@click.option("--part", "parts", multiple=True, type=click.Choice(PARTS), help="Repeatable. [default: all]")
@click.option("--side", "sides", multiple=True, type=click.Choice(SIDES), help="Repeatable. [default: all]")
@click.option("--place", "places", multiple=True, type=click.Choice(PLACES), help="Repeatable. [default: all]")
@click.option(
    "--latency-ms",
    "latencies_ms",
    multiple=True,
    type=click.FloatRange(min=0),
    help="Latency per request of the S3 stand-in; repeatable. [default: 30, 5]",
)
@click.option(
    "--writers",
    multiple=True,
    type=click.IntRange(min=1),
    help="Independent writers; repeatable. [default: 1, 4, 16, 64]",
)
@click.option("--callers", type=click.IntRange(min=1), help="Callers of one table. [default: 256]")
@click.option(
    "--stream-callers",
    multiple=True,
    type=click.IntRange(min=1),
    help="Callers of one stream; repeatable. [default: 1, 100, 10000]",
)
@click.option(
    "--flush-interval-s",
    "flush_intervals_s",
    multiple=True,
    type=click.FloatRange(min=0),
    help="Flush interval of the stream; repeatable. [default: 1, 0.1]",
)
@click.option("--max-bytes", type=click.IntRange(min=1), help="Setting of the stream. [default: 128 MiB]")
@click.option("--day-commits", type=click.IntRange(min=1), help="Commits of the part day. [default: 10000]")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="Length of each load. [default: 10]")
@click.option("--rounds", type=click.IntRange(min=1), help="Loads of each side, in turn. [default: 3]")
@click.option("--quick", is_flag=True, help="Check that everything works: one second per side, few writers.")
@folder_option
@json_option
@svg_option
def commits(
    parts: tuple[str, ...],
    sides: tuple[str, ...],
    places: tuple[str, ...],
    latencies_ms: tuple[float, ...],
    writers: tuple[int, ...],
    callers: int | None,
    stream_callers: tuple[int, ...],
    flush_intervals_s: tuple[float, ...],
    max_bytes: int | None,
    day_commits: int | None,
    seconds: float | None,
    rounds: int | None,
    quick: bool,
    folder: Path,
    json_path: Path | None,
    svg_path: Path | None,
) -> None:
    """Measure commits of many writers to one table, beside deltalake and pyiceberg."""
    from tallymark.bench.commits import question
    from tallymark.bench.commits.measure import Effort

    chosen: dict[str, Any] = {"writers": writers, "callers": callers, "seconds": seconds, "rounds": rounds}
    chosen |= {"stream_callers": stream_callers, "flush_intervals_s": flush_intervals_s, "max_bytes": max_bytes}
    chosen["day_commits"] = day_commits
    chosen["latencies_s"] = tuple(latency_ms / 1000 for latency_ms in latencies_ms)
    effort = question.QUICK if quick else Effort()
    effort = replace(effort, **{name: value for name, value in chosen.items() if value})
    asked = question.Asked(
        parts=[part for part in PARTS if not parts or part in parts],
        sides=[side for side in SIDES if not sides or side in sides],
        places=[place for place in PLACES if not places or place in places],
        effort=effort,
        parent=folder,
    )
    found = question.tables(asked, show_progress)
    run_question("commits", question.METHOD, effort, found, json_path=json_path, svg_path=svg_path)
