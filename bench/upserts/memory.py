"""The memory of each task of an upsert, by the share of a file's rows that change: each in a process of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pyarrow as pa

import tallymark
from tallymark.bench.results import column, percent, size
from tallymark.bench.upserts.case import KEY, ORDER, UpsertCase
from tallymark.bench.upserts.engine import InTurn, write
from tallymark.bench.writes.apart import run_apart
from tallymark.bench.writes.order import Order
from tallymark.engine.upsert.locate import hit_schema

BAR_BYTES = 600 << 20

SHARES = (0.01, 0.1, 0.5, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    title: str = column("")
    file_bytes: int = column("file", size)
    share: float = column("rows that change", percent)
    before_bytes: int = column("before the task", size)
    peak_bytes: int = column("peak", size)


def tasks_memory(
    folder: Path, rows: int, progress: Callable[[str], None] = lambda text: None, *, shares: Sequence[float] = SHARES
) -> Sequence[MemoryRow]:
    """Rewrite a file of so many rows, which is the table, in a new folder below this one for each share."""
    found: list[MemoryRow] = []
    for share in shares:
        progress(f"upserts: memory of a task, {share:.0%} of {rows:,} rows")
        here = folder / f"memory-{share}"
        UpsertCase(name="A", rows=rows, batch=round(share * rows), files=1).write(here / "source")
        found += anyio.run(_upserted, here, share, backend="trio")
    return found


async def _upserted(folder: Path, share: float) -> list[MemoryRow]:
    def order(source: str, mode: Any) -> Order:
        at, to = str(folder / "source" / source), str(folder / "table")
        return Order(source=at, target=to, mode=mode, record_key=KEY, order_by=ORDER)

    await write(order("table", "append"), InTurn())
    [file] = (folder / "table").glob("*.parquet")
    run = _Apart(folder)
    await write(order("batch", "upsert"), run)
    return [
        MemoryRow(
            title=f"{phase} task, {share:.0%}",
            file_bytes=file.stat().st_size,
            share=share,
            before_bytes=before,
            peak_bytes=peak,
        )
        for phase, (before, peak) in run.peaks.items()
    ]


class _Apart:
    """Run each task in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.peaks: dict[str, tuple[int, int]] = {}
        """The greatest of each phase: before the task, and in all."""
        self._folder = folder

    async def __call__(self, phase: str, task: Callable[..., Any], *given: Any) -> Any:
        if phase in ("plan", "route"):  # the driver's
            return await anyio.to_thread.run_sync(task, *given)
        if phase == "lookup":
            task, given = _locate, (self._folder / "hits.arrow", *given)
        found, before, peak = await anyio.to_thread.run_sync(run_apart, task, *map(self._spooled, given))
        if isinstance(found, Path):
            found = pa.ipc.open_stream(pa.memory_map(str(found))).read_all().to_batches()
        if peak > self.peaks.get(phase, (0, 0))[1]:
            self.peaks[phase] = before, peak
        return found

    def _spooled(self, given: Any) -> Any:
        """Put rows in a file, from which the task has them batch by batch, as from its engine."""
        if not isinstance(given, pa.Table):
            return given
        path = self._folder / "rows.arrow"
        with pa.ipc.new_stream(str(path), given.schema) as writer:
            writer.write_table(given, max_chunksize=10_000)
        return path


def _locate(path: Path, ticket: tallymark.WriteTicket, lookup: tallymark.Lookup, backend: Any) -> Path:
    """Put hits in a file batch by batch, as they go to an engine."""
    with pa.ipc.new_stream(str(path), hit_schema(ticket)) as writer:
        for batch in tallymark.locate_task(ticket, lookup, backend=backend):
            writer.write_batch(batch)
    return path
