"""Command line of the question ``history``."""

from functools import partial
from pathlib import Path

import click

from tallymark.bench.command import json_option, run_question, show_progress, svg_option


@click.command()
@click.option("--commits", type=click.IntRange(min=10), default=10_000, show_default=True, help="How many are made.")
@json_option
@svg_option
def history(commits: int, json_path: Path | None, svg_path: Path | None) -> None:
    """Count objects, requests and time of a table's bookkeeping while commits accumulate."""
    import anyio

    from tallymark.bench.history import question

    found = anyio.run(partial(question.tables, commits, show_progress), backend="trio")
    run_question("history", question.METHOD, None, found, json_path=json_path, svg_path=svg_path)
