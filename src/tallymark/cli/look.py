"""Commands that report and change nothing: files, explain, plan."""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

import click

from tallymark.cli import explain as explain_of
from tallymark.cli import files as files_of
from tallymark.cli import plan as plan_of
from tallymark.cli.asking import Place, answer, ask, at_a_url, json_keys, show

if TYPE_CHECKING:
    from tallymark.engine.jobs.request import Mode, PartitionOverwrite
    from tallymark.engine.settings import SizingSettings


@click.command(epilog=json_keys(files_of.FilesDocument))
@at_a_url
@click.option("--partition", default="", metavar="PATH", help="Only what lies below it, such as year=2013.")
@click.option("--small-bytes", type=click.IntRange(min=0), metavar="N", help="Files below N bytes are small [100 MiB].")
def files(at: Place, partition: str, small_bytes: int | None) -> None:
    """Show how large a table's files are, and where the small ones lie."""
    from tallymark.cli.files_page import show_files

    answer(at, functools.partial(files_of.files, partition=partition, small_below=small_bytes), show_files)


@click.command(epilog=json_keys(explain_of.ExplainDocument))
@at_a_url
@click.argument("file")
def explain(at: Place, file: str) -> None:
    """Say why a file is kept, hidden or due for removal.

    FILE is a path below the table, a URL of the same, or the bare name of a data file.
    """
    from tallymark.cli.explain_page import show_explain

    answer(at, functools.partial(explain_of.explain, file=file), show_explain)


@click.command(epilog=json_keys(plan_of.PlanDocument))
@at_a_url
@click.option("--mode", type=click.Choice(["append", "overwrite"]), required=True)
@click.option("--partition", multiple=True, metavar="PATH", help="The part that the write is for: year=2013.")
@click.option("--partition-overwrite", type=click.Choice(["static", "dynamic"]), default="static", show_default=True)
@click.option("--only-partition", "only_partitions", multiple=True, metavar="PATH", help="All that it may touch.")
@click.option("--base", type=click.IntRange(min=0), metavar="POSITION", help="At which the table was read.")
@click.option("--txn", metavar="NAME:BATCH", help="Under which it is to be committed once.")
@click.option(
    "--partitions-file",
    type=click.File(encoding="utf-8"),
    metavar="FILE",
    help="Partition paths that the input has rows for, one a line, their rows after a tab; - is stdin.",
)
@click.option(
    "--sizing",
    multiple=True,
    metavar="KEY=VALUE",
    callback=plan_of.parse_sizing,
    help="SizingSettings of the write; 'default' for all of them. Else sizing is off.",
)
def plan(
    at: Place,
    mode: "Mode",
    partition: Sequence[str],
    partition_overwrite: "PartitionOverwrite",
    only_partitions: Sequence[str],
    base: int | None,
    txn: str | None,
    partitions_file: TextIO | None,
    sizing: "SizingSettings | None",
) -> None:
    """Show what a write would do, and change nothing.

    Partitions and files that would go, and where --partitions-file says which partitions the input has rows for, those
    that would be added; with rows and --sizing, the small files that would be filled, and what that rewrites. A
    DataFrame gives more: tallymark.plan(df, url, ...).
    """
    from tallymark.cli.plan_page import show_plan

    asked = plan_of.PlanWords(
        mode=mode,
        partition=partition,
        partition_overwrite=partition_overwrite,
        only_partitions=only_partitions,
        base=base,
        txn=txn,
        sizing=sizing,
        incoming=None if partitions_file is None else plan_of.partitions_in(partitions_file),
    )
    found = ask(at, functools.partial(plan_of.plan, words=asked))
    show(at, plan_of.document(found), lambda page, _: show_plan(page, found))
