"""``tallymark plan --json``: what a write would do."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

import click

from tallymark.backends.meter import PriceList

if TYPE_CHECKING:
    from tallymark.engine.writes import Table, WritePlan
    from tallymark.engine.writes.request import Mode, PartitionOverwrite

PRICES = ("put", "get", "list", "delete", "sent_gb")


class PlanScopeFields(TypedDict):
    all: bool
    partitions: list[str]
    prefixes: list[str]


class PlannedFields(TypedDict):
    partition: str
    change: Literal["new", "added to", "replaced", "emptied"]
    is_new: bool
    files: int | None
    """To come; null where that is not known."""
    rows: int | None
    removed_files: int
    removed_rows: int
    removed_bytes: int


class RequestFields(TypedDict):
    put: int
    get: int
    head: int
    list: int
    delete: int


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
    """Paths of the files that would go."""
    removed_files: int
    removed_rows: int
    removed_bytes: int
    retain_hours: float | None
    rows: int | None
    files: int | None
    bytes: int | None
    estimate: str
    requests: RequestFields | None
    cost: float | None
    """Null without prices, or where ``requests`` is."""
    currency: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWords:
    """What was typed."""

    mode: "Mode"
    partition: Sequence[str]
    partition_overwrite: "PartitionOverwrite"
    only_partitions: Sequence[str]
    base: int | None
    txn: str | None
    incoming: Sequence[str] | None


async def plan(table: "Table", *, words: PlanWords) -> "WritePlan":
    from tallymark.engine.files.partition_text import partition_values

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
        incoming=words.incoming,
    )


def document(found: "WritePlan", prices: PriceList | None) -> PlanDocument:
    cost = None if prices is None else found.cost(prices)
    currency = None if prices is None else prices.currency
    return cast("PlanDocument", {**found.fields(), "cost": cost, "currency": currency})


def paths_in(lines: Iterable[str]) -> list[str]:
    """Of a file with a partition path in each line; empty lines do not count."""
    return [line.strip() for line in lines if line.strip()]


def parse_prices(_context: click.Context, parameter: click.Parameter, pairs: Iterable[str]) -> dict[str, float]:
    """``--price put=0.005``. Raises BadParameter with the rule that a pair breaks."""
    given = {}
    for pair in pairs:
        name, _, amount = pair.partition("=")
        try:
            if name not in PRICES:
                raise ValueError(name)
            given[name] = float(amount)
        except ValueError:
            raise click.BadParameter(
                f"say {'|'.join(PRICES)}=AMOUNT: per 1,000 requests, or per GB", param=parameter
            ) from None
    return given
