"""Command line of the question ``upserts``."""

import os
from pathlib import Path
from typing import get_args

import click

from tallymark.bench.command import folder_option, json_option, run_question, show_progress, svg_option
from tallymark.bench.upserts.case import Name, case, growth
from tallymark.bench.upserts.step import NAMES, OWN
from tallymark.bench.writes.command import check_spark, python_option
from tallymark.bench.writes.rounds import RoundMethod

ROWS_OF_A_FILE = 3_300_000
"""Rows of A in a file of 120 MiB."""

METHOD = """\
Each side has a process of its own, those with Spark a warm session, local[{cores}], 4 GiB for the JVM, and a table on
local disk that it has made in four files. A round has of each side an upsert of the batch and one of a single row to a
table of 1,000 rows, and of ours such appends with sizes planned, each to a copy of the table, beginning with another
each time; {rounds} rounds, after {warm_up} to warm up. The floor decodes and encodes the files that have a row of the
batch. CPU: user and system seconds of the side's whole process tree. "net" is without that of the same write of one
row. Shown are medians; ratios are taken within a round, with the interval that holds their median with 95 % (under 6
rounds the smallest and the largest). Tables have {rows:,} rows: below some millions, fixed costs decide."""


@click.command()
@click.option("--rows", type=click.IntRange(min=1000), default=10_000_000, show_default=True, help="Of each table.")
@click.option("--case", "names", multiple=True, type=click.Choice(get_args(Name)), help="Repeatable. [default: all]")
@click.option("--side", "sides", multiple=True, type=click.Choice(NAMES), help="Repeatable. [default: all]")
@click.option("--growth/--no-growth", "has_growth", default=True, help="Whether a table of ten times --rows is made.")
@click.option("--memory/--no-memory", "has_memory", default=True, help="Whether the memory of tasks is measured.")
@click.option("--rounds", type=click.IntRange(min=1), default=6, show_default=True, help="Measured writes of a side.")
@click.option("--warm-up", type=click.IntRange(min=0), default=2, show_default=True, help="Rounds before them.")
@click.option("--cores", type=click.IntRange(min=1), help="Cores of each side's Spark. [default: this process's]")
@folder_option
@python_option
@json_option
@svg_option
def upserts(
    rows: int,
    names: tuple[Name, ...],
    sides: tuple[str, ...],
    has_growth: bool,
    has_memory: bool,
    rounds: int,
    warm_up: int,
    cores: int | None,
    folder: Path,
    pythons: dict[str, str],
    json_path: Path | None,
    svg_path: Path | None,
) -> None:
    """Measure upserts by record key, beside Delta's MERGE and Hudi's upsert."""
    from tallymark.bench.upserts import question

    chosen = [side for side in NAMES if not sides or side in sides]
    if not {*chosen} <= {*OWN}:
        check_spark()
    method = RoundMethod(rounds=rounds, warm_up=warm_up, cores=cores or len(os.sched_getaffinity(0)))
    asked = question.Asked(
        cases=[case(name, rows) for name in names or get_args(Name)],
        growth=growth(rows) if has_growth else None,
        memory_rows=min(ROWS_OF_A_FILE, rows) if has_memory else 0,
        sides=chosen,
        method=method,
        pythons=pythons,
        parent=folder,
    )
    said = METHOD.format(cores=method.cores, rounds=rounds, warm_up=warm_up, rows=rows).replace("\n", " ")
    found = question.tables(asked, show_progress)
    run_question("upserts", said, method, found, json_path=json_path, svg_path=svg_path)
