"""``tallymark plan`` for people."""

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console

from tallymark.cli.page import print_table
from tallymark.engine.jobs.result import shown_bytes
from tallymark.engine.planning.write_plan import PARTITIONS_SHOWN, PlannedPartition, WritePlan, shown_sizes


def show_plan(page: Console, plan: WritePlan) -> None:
    print_table(page, ["", ""], list(plan.facts()), folding=(1,), has_header=False)
    if plan.partitions:
        _show_partitions(page, plan)
    if len(plan.partitions) > PARTITIONS_SHOWN:
        page.print(f"And {len(plan.partitions) - PARTITIONS_SHOWN:,} partitions more; --json names them all.")
    page.print("Nothing was changed.")


@dataclass(frozen=True, slots=True)
class _Column:
    heading: str
    shown: Callable[[PlannedPartition], str]
    is_number: bool = True
    folds: bool = False


_PARTITION = (
    _Column("partition", lambda found: found.partition or "-", is_number=False, folds=True),
    _Column("change", lambda found: found.change, is_number=False),
)
_GONE = (
    _Column("files removed", lambda found: f"{found.removed_files:,}"),
    _Column("rows", lambda found: f"{found.removed_rows:,}"),
    _Column("bytes", lambda found: shown_bytes(found.removed_bytes)),
)
_COMING = (
    _Column("files added", lambda found: _known(found.files)),
    _Column("rows", lambda found: _known(found.rows)),
)
_FILLED = (
    _Column("filled", lambda found: f"{sum(file.fill is not None for file in found.planned or ()):,}"),
    _Column("rewritten", lambda found: shown_bytes(found.rewritten_bytes)),
)
_SIZES = (_Column("sizes", shown_sizes, is_number=False, folds=True),)


def _show_partitions(page: Console, plan: WritePlan) -> None:
    """Print one row per partition, without columns that would be empty."""
    is_sized = plan.sizing is not None
    columns = [
        *_PARTITION,
        *(_GONE if plan.removed or not is_sized else ()),
        *_COMING,
        *(_FILLED if is_sized and plan.mode == "append" else ()),
        *(_SIZES if is_sized else ()),
    ]
    print_table(
        page,
        [column.heading for column in columns],
        [tuple(column.shown(found) for column in columns) for found in plan.partitions[:PARTITIONS_SHOWN]],
        folding=tuple(place for place, column in enumerate(columns) if column.folds),
        numbers=tuple(place for place, column in enumerate(columns) if column.is_number),
    )


def _known(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"
