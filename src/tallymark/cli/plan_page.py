"""``tallymark plan`` for people."""

from rich.console import Console

from tallymark.backends.meter import PriceList
from tallymark.cli.page import print_table
from tallymark.engine.writes.plan import PARTITIONS_SHOWN, PlannedPartition, WritePlan
from tallymark.engine.writes.result import shown_bytes


def show_plan(page: Console, plan: WritePlan, prices: PriceList | None) -> None:
    facts = list(plan.facts())
    if prices is not None and (cost := plan.cost(prices)) is not None:
        facts.append(("cost", f"{cost:,.6g} {prices.currency}"))
    print_table(page, ["", ""], facts, folding=(1,), has_header=False)
    if plan.partitions:
        headings = ["partition", "change", "files that go", "rows", "bytes", "files that come", "rows"]
        rows = [_partition(each) for each in plan.partitions[:PARTITIONS_SHOWN]]
        print_table(page, headings, rows, folding=(0,), numbers=(2, 3, 4, 5, 6))
    if len(plan.partitions) > PARTITIONS_SHOWN:
        page.print(f"And {len(plan.partitions) - PARTITIONS_SHOWN:,} partitions more; --json names them all.")
    page.print("Nothing was changed.")


def _partition(found: PlannedPartition) -> tuple[str, ...]:
    return (
        found.partition or "-",
        found.change,
        f"{found.removed_files:,}",
        f"{found.removed_rows:,}",
        shown_bytes(found.removed_bytes),
        "?" if found.files is None else f"{found.files:,}",
        "?" if found.rows is None else f"{found.rows:,}",
    )
