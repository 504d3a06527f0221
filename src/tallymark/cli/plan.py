"""``tallymark plan``: what a write would do."""

import functools
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypedDict, cast

import click

from tallymark.cli.asking import Place, ask, at_a_url, json_keys, show

if TYPE_CHECKING:
    from tallymark.engine.jobs.request import Mode, PartitionOverwrite
    from tallymark.engine.planning.write_plan import WritePlan
    from tallymark.engine.settings import SizingSettings
    from tallymark.engine.sizing.profile import IncomingRows
    from tallymark.engine.table import Table


class PlanScopeFields(TypedDict):
    all: bool
    partitions: list[str]
    prefixes: list[str]


class PlannedFields(TypedDict):
    partition: str
    change: Literal["new", "added to", "replaced", "emptied"]
    is_new: bool
    files: int | None
    """Files to add; null where unknown."""
    rows: int | None
    removed_files: int
    removed_rows: int
    removed_bytes: int
    planned: "list[PlannedFileFields] | None"
    """The files to add; null where no sizes are planned."""
    rewritten_bytes: int


class SmallFileFields(TypedDict):
    path: str
    rows: int
    bytes: int


class PlannedFileFields(TypedDict):
    rows: int
    """Rows to add to it."""
    bytes: int
    """Its expected size."""
    fill: SmallFileFields | None
    """The small file whose rows it takes over, with its present size."""


class SizingFields(TypedDict):
    files: int
    filled_files: int
    bytes: int
    inserted_bytes: int
    rewritten_bytes: int
    rewritten_per_byte: float
    """Bytes rewritten per inserted byte."""


class PlanDocument(TypedDict):
    url: str
    mode: Literal["append", "overwrite"]
    position: int
    partition_by: list[str]
    is_created: bool
    committed_at: int | None
    """The position at which the same txn was committed; null where it was not."""
    scope: PlanScopeFields | None
    partitions: list[PlannedFields]
    removed: list[str]
    """Paths of the files to remove."""
    removed_files: int
    removed_rows: int
    removed_bytes: int
    retain_hours: float | None
    rows: int | None
    files: int | None
    bytes: int | None
    sizing: SizingFields | None
    """Null where sizing is off, or the rows were not counted."""
    estimate: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWords:
    """The options as typed."""

    mode: "Mode"
    partition: Sequence[str]
    partition_overwrite: "PartitionOverwrite"
    only_partitions: Sequence[str]
    base: int | None
    txn: str | None
    sizing: "SizingSettings | None"
    incoming: "Sequence[str | IncomingRows] | None"


async def ask_plan(table: "Table", *, words: PlanWords) -> "WritePlan":
    from tallymark.engine.partitions.path import partition_values

    snapshot = await table.snapshot()

    def values(path: str) -> dict[str, Any]:
        return dict(partition_values(path, snapshot.schema, snapshot.partition_by))

    return await table.plan(
        mode=words.mode,
        partition=values("/".join(words.partition)) if words.partition else None,
        partition_overwrite=words.partition_overwrite,
        only_partitions=[values(path) for path in words.only_partitions] or None,
        base=words.base,
        txn=words.txn,
        sizing=words.sizing,
        incoming=words.incoming,
    )


def document(found: "WritePlan") -> PlanDocument:
    return cast("PlanDocument", found.fields())


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

    asked = PlanWords(
        mode=mode,
        partition=partition,
        partition_overwrite=partition_overwrite,
        only_partitions=only_partitions,
        base=base,
        txn=txn,
        sizing=sizing,
        incoming=None if partitions_file is None else partitions_in(partitions_file),
    )
    found = ask(at, functools.partial(ask_plan, words=asked))
    show(at, document(found), lambda page, _: show_plan(page, found))
