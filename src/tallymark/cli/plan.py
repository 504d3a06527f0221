"""``tallymark plan``: what a write would do."""

import functools
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

import click

from tallymark.cli.asking import Place, ask, at_a_url, json_keys, show
from tallymark.engine.documents.plan import PlanDocument, PlanRequest, plan_document, read_plan

if TYPE_CHECKING:
    from tallymark.engine.jobs.request import Mode, PartitionOverwrite
    from tallymark.engine.settings import SizingSettings
    from tallymark.engine.sizing.profile import IncomingRows


def partitions_in(lines: Iterable[str]) -> "list[str | IncomingRows]":
    """Return the partitions of a file with a partition path per line, followed after tabs by its rows and their plain
    bytes if known.

    Empty lines are ignored. Raises BadParameter, quoting an invalid line.
    """
    return [_partition_in(line.strip(" \r\n")) for line in lines if line.strip()]


def _partition_in(line: str) -> "str | IncomingRows":
    from tallymark.engine.sizing.profile import IncomingRows

    path, *counts = line.split("\t")
    if not counts:
        return path
    if len(counts) > 2 or not all(count.isdecimal() for count in counts):
        raise click.BadParameter(f"{line!r}: say PATH, or PATH, a tab and its rows, or these, a tab and their bytes")
    return IncomingRows(path, *map(int, counts))


def parse_sizing(_context: click.Context, parameter: click.Parameter, words: Sequence[str]) -> "SizingSettings | None":
    """Parse ``--sizing default``, or ``--sizing KEY=VALUE``; without it, sizing is off. Raises BadParameter, naming the
    rule.
    """
    from dataclasses import fields

    from tallymark.engine.errors import InvalidRequest
    from tallymark.engine.settings import SizingSettings

    if not words:
        return None
    names = [field.name for field in fields(SizingSettings)]
    given = {}
    for word in words:
        name, _, value = word.partition("=")
        if name in names:
            given[name] = _number(value)
        elif word != "default":
            raise click.BadParameter(f"{word!r}: say default, or {'|'.join(names)}=VALUE", param=parameter)
    try:
        return SizingSettings(**given)
    except InvalidRequest as error:
        raise click.BadParameter(str(error), param=parameter) from None


def _number(value: str) -> Any:
    """Return the number, or the text unchanged: the settings know which words they accept."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(value)
    return value


@click.command(epilog=json_keys(PlanDocument))
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
    callback=parse_sizing,
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

    Lists the partitions and files to remove and, if --partitions-file names the partitions of the input, those to add;
    with rows and --sizing, the small files to fill, and the bytes that this rewrites. A DataFrame gives more:
    tallymark.plan(df, url, ...).
    """
    from tallymark.cli.plan_page import show_plan

    asked = PlanRequest(
        mode=mode,
        partition=partition,
        partition_overwrite=partition_overwrite,
        only_partitions=only_partitions,
        base=base,
        txn=txn,
        sizing=sizing,
        incoming=None if partitions_file is None else partitions_in(partitions_file),
    )
    found = ask(at, functools.partial(read_plan, request=asked))
    show(at, plan_document(found), lambda page, _: show_plan(page, found))
