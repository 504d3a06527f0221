"""What a side does in a round, each to a copy of a table that it has made: an upsert of the batch and one of a single
row; the engine and ours, too, an append of the new rows and one of a single row.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tallymark.bench.paired import Estimate
from tallymark.bench.upserts.case import KEY, ORDER, SMALL_ROWS, UpsertCase
from tallymark.bench.writes.hands import Hands, SideFailed
from tallymark.bench.writes.order import Done, FileSizes, Order
from tallymark.engine.settings import SizingSettings

NAMES = ("engine", "ours", "delta", "hudi", "hudi-bloom", "floor")

OWN = {"engine": "Tallymark's engine", "floor": "floor"}
"""Titles of the sides without Spark."""

ONE_ROW, APPEND = "one row", "append"
"""Further names of a step; an upsert of the batch has none."""

_DEFAULTS = SizingSettings()
_SIZES = FileSizes(
    policy=_DEFAULTS.policy,
    max_file_bytes=_DEFAULTS.max_file_bytes,
    small_file_bytes=_DEFAULTS.small_file_bytes,
)


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    hands: Hands
    order: Order
    """Its target is the table that is copied."""
    rows: int
    """That the copy has in the end."""

    def write(self, number: int) -> Done:
        """Raises SideFailed, also where the side's readers do not see the rows that they should."""
        table = Path(self.order.target)
        copy = table.with_name(f"{table.name}-{number}")
        shutil.copytree(table, copy, copy_function=_linked)
        try:
            done = self.hands.write(replace(self.order, target=str(copy)))
            if number == 0 and (seen := self.hands.row_count(str(copy))) != self.rows:
                raise SideFailed(f"it was to leave {self.rows:,} rows, and its readers see {seen:,}")
            before = {path.name for path in table.rglob("*.parquet")}
            new = sum(path.stat().st_size for path in copy.rglob("*.parquet") if path.name not in before)
        finally:
            shutil.rmtree(copy)
        return replace(done, figures={**done.figures, "written_bytes": new})


def steps(case: UpsertCase, hands: Hands, sources: Path, folder: Path) -> Iterator[Step]:
    """Make the side's tables; yield its steps. Raises SideFailed."""

    def order(source: str, target: str, mode: Literal["append", "upsert"], sizes: FileSizes | None = None) -> Order:
        at, to = str(sources / source), str(folder / target)
        return Order(source=at, target=to, mode=mode, sizes=sizes, record_key=KEY, order_by=ORDER)

    folder.mkdir(parents=True)
    for name in ("table", "small"):
        hands.write(order(name, name, "append"))
    is_floor = hands.name == "floor"
    inserted = 0 if is_floor else case.inserted
    yield Step(hands.name, hands, order("batch", "table", "upsert"), case.rows + inserted)
    if is_floor:
        return
    yield Step(f"{hands.name}: {ONE_ROW}", hands, order("one", "small", "upsert"), SMALL_ROWS)
    if inserted and hands.name in ("engine", "ours"):
        name = f"{hands.name}: {APPEND}"
        yield Step(name, hands, order("inserts", "table", "append", _SIZES), case.rows + inserted)
        yield Step(f"{name}: {ONE_ROW}", hands, order("one", "small", "append", _SIZES), SMALL_ROWS + 1)


@contextmanager
def own_hands(side: str, logs: Path) -> Iterator[Hands]:
    """Start the process of a side without Spark for the block."""
    with Hands(side, {}, {}, logs / f"{side}.log", sys.executable, "tallymark.bench.upserts.worker") as hands:
        hands.begin()
        hands.await_session()
        yield hands


def verdict(share: Estimate | None) -> str | None:
    """Say ``yes`` or ``no`` only where the whole interval does."""
    if share is None:
        return None
    return "yes" if share.high <= 1 else "no" if share.low > 1 else "?"


def _linked(source: str, target: str) -> str:
    """Copy a file; writers leave data files as they are, so that a second name for one is enough."""
    if source.endswith(".parquet"):
        os.link(source, target)
        return target
    return shutil.copy2(source, target)
