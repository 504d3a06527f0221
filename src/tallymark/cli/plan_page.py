"""``tallymark plan`` for people."""

from collections.abc import Sequence

from rich.console import Console

from tallymark.backends.meter import PriceList
from tallymark.cli.page import print_table
from tallymark.engine.writes.plan import PARTITIONS_SHOWN, PlannedPartition, WritePlan, shown_sizes
from tallymark.engine.writes.result import shown_bytes


def show_plan(page: Console, plan: WritePlan, prices: PriceList | None) -> None:
    facts = list(plan.facts())
    if prices is not None and (cost := plan.cost(prices)) is not None:
        facts.append(("cost", f"{cost:,.6g} {prices.currency}"))
    print_table(page, ["", ""], facts, folding=(1,), has_header=False)
    if plan.partitions:
        show_partitions = _show_changes if plan.sizing is None or plan.removed else _show_sizes
        show_partitions(page, plan.partitions[:PARTITIONS_SHOWN])
    if len(plan.partitions) > PARTITIONS_SHOWN:
        page.print(f"And {len(plan.partitions) - PARTITIONS_SHOWN:,} partitions more; --json names them all.")
    page.print("Nothing was changed.")


def _show_changes(page: Console, partitions: Sequence[PlannedPartition]) -> None:
    headings = ["partition", "change", "files that go", "rows", "bytes", "files that come", "rows"]
    rows = [(*_gone(each), *_coming(each)) for each in partitions]
    print_table(page, headings, rows, folding=(0,), numbers=(2, 3, 4, 5, 6))


def _show_sizes(page: Console, partitions: Sequence[PlannedPartition]) -> None:
    headings = ["partition", "change", "files that come", "rows", "filled", "rewritten", "sizes"]
    rows = [
        (*_gone(each)[:2], *_coming(each), f"{_filled(each):,}", shown_bytes(each.rewritten_bytes), shown_sizes(each))
        for each in partitions
    ]
    print_table(page, headings, rows, folding=(0, 6), numbers=(2, 3, 4, 5))


def _filled(found: PlannedPartition) -> int:
    return sum(file.fill is not None for file in found.planned or ())


def _gone(found: PlannedPartition) -> tuple[str, ...]:
    return (
        found.partition or "-",
        found.change,
        f"{found.removed_files:,}",
        f"{found.removed_rows:,}",
        shown_bytes(found.removed_bytes),
    )


def _coming(found: PlannedPartition) -> tuple[str, ...]:
    return (
        "?" if found.files is None else f"{found.files:,}",
        "?" if found.rows is None else f"{found.rows:,}",
    )
