"""The library without Spark: the steps of a write on Arrow batches, one task after the other, and the floor."""

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import anyio.to_thread
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

import tallymark
from tallymark.backends.contract import Backend
from tallymark.bench.writes.order import Order
from tallymark.engine.arrow.encoding import parquet_writer
from tallymark.engine.settings import MarkerSettings, SizingSettings, TaskSettings
from tallymark.engine.sizing.plan import PlannedFile

pc: Any = pyarrow.compute
"""Its stubs know fewer combinations of arguments than it takes."""

T = TypeVar("T")

Source = Path | pa.Table
"""Rows of a task: a Parquet file, an Arrow stream in a file, or a table."""

TASK_BYTES = 32 * 1024 * 1024

BATCH_ROWS = 10_000
"""As Spark hands them to a task."""


class InTurn:
    """Run tasks in a thread of this process, and sum the CPU seconds of each phase."""

    def __init__(self) -> None:
        self.figures: dict[str, float] = {}
        self._last = time.process_time()

    async def __call__(self, phase: str, task: Callable[..., T], *given: Any) -> T:
        found = await anyio.to_thread.run_sync(task, *given)
        self.end(phase)
        return found

    def end(self, phase: str) -> None:
        """Count what was spent since the last phase as this one's."""
        now = time.process_time()
        self.figures[f"{phase}_s"] = self.figures.get(f"{phase}_s", 0.0) + now - self._last
        self._last = now


Run = Callable[..., Awaitable[Any]]
"""How a task is run: given the name of its phase, a function of a module, and the function's arguments."""


async def write(order: Order, run: Run, backend: Backend | None = None) -> tallymark.WriteResult:
    """Create a table or append to it, with sizes planned where the order has some, or upsert."""
    sources = sorted(Path(order.source).glob("*.parquet"))
    named: dict[str, Any] = {"markers": MarkerSettings(kind="direct")}
    if order.record_key is not None:
        named |= {"record_key": order.record_key, "order_by": order.order_by, "unique_in": "partition"}
        named |= {"readers": "table"}
    if order.sizes is not None:
        named["sizing"] = SizingSettings()
    table = tallymark.open_table(order.target, backend=backend)
    async with table.write(schema=pq.read_schema(sources[0]), mode=order.mode, **named) as job:
        parts: Sequence[tuple[Source, Sequence[PlannedFile]]] = [(source, ()) for source in sources]
        if order.mode == "upsert":
            parts = await _routed(job, sources, run, backend)
        elif order.sizes is not None:
            parts = await _sized(job, sources, run)
        return await job.commit(
            [
                await run("write", write_part, job.ticket, rows, number, planned, backend)
                for number, (rows, planned) in enumerate(parts)
            ]
        )


async def _routed(
    job: tallymark.WriteJob, sources: Sequence[Path], run: Run, backend: Backend | None
) -> list[tuple[Source, Sequence[PlannedFile]]]:
    keys = [await run("keys", store_keys, job.ticket, path, number, backend) for number, path in enumerate(sources)]
    lookups = await job.look_up(keys)
    hits = [hit for lookup in lookups for hit in await run("lookup", locate, job.ticket, lookup, backend)]
    plan = await job.size(job.profile(tallymark.hit_counts(hits)))
    tasks = tallymark.tasks_of(plan, task_bytes=TASK_BYTES)
    changes = await run("route", route, job.ticket, sources, hits, tasks)
    return list(zip(changes, tasks, strict=True))


async def _sized(
    job: tallymark.WriteJob, sources: Sequence[Path], run: Run
) -> list[tuple[Source, Sequence[PlannedFile]]]:
    rows = pa.concat_tables([pq.read_table(path) for path in sources])
    plan = await job.size(await run("plan", tallymark.profile_batches, job.ticket, rows))
    parts: list[tuple[Source, Sequence[PlannedFile]]] = []
    for number, file in enumerate(plan.files):
        first = sum(each.rows for each in plan.files[:number])
        parts.append((rows.slice(first, file.rows if file is not plan.files[-1] else None), (file,)))
    return parts


def store_keys(ticket: tallymark.WriteTicket, rows: Source, number: int, backend: Backend | None) -> Any:
    return tallymark.key_task(ticket, _batches(rows), task=number, backend=backend)


def locate(ticket: tallymark.WriteTicket, lookup: tallymark.Lookup, backend: Backend | None) -> list[pa.RecordBatch]:
    return list(tallymark.locate_task(ticket, lookup, backend=backend))


def route(ticket: tallymark.WriteTicket, sources: Sequence[Path], hits: Any, tasks: Any) -> list[pa.Table]:
    return tallymark.routed(ticket, (batch for path in sources for batch in _batches(path)), hits, tasks)


def write_part(
    ticket: tallymark.WriteTicket, rows: Source, number: int, planned: Sequence[PlannedFile], backend: Backend | None
) -> tallymark.TaskReport:
    return tallymark.write_task(ticket, _batches(rows), task=number, planned=planned, backend=backend)


def _batches(rows: Source) -> Iterable[pa.RecordBatch]:
    if isinstance(rows, pa.Table):
        return rows.to_batches(max_chunksize=BATCH_ROWS)
    if rows.suffix == ".parquet":
        return pq.ParquetFile(rows).iter_batches(BATCH_ROWS)
    return pa.ipc.open_stream(pa.OSFile(str(rows), "rb"))


def touched(order: Order) -> list[Path]:
    """Return the files of the table whose range of keys has one of the batch's that the table may have."""
    keys = pq.read_table(order.source, columns=[order.record_key]).column(0)
    found = []
    for path in sorted(Path(order.target).glob("*.parquet")):
        footer = pq.read_metadata(path)
        groups: list[Any] = [footer.row_group(number).column(0).statistics for number in range(footer.num_row_groups)]
        least, greatest = min(group.min for group in groups), max(group.max for group in groups)
        if pc.any(pc.and_(pc.greater_equal(keys, least), pc.less_equal(keys, greatest))).as_py():
            found.append(path)
    return found


def rewrite(path: Path) -> None:
    """Decode a file and encode it again, in the library's encodings: what no writer of whole files is spared."""
    source = pq.ParquetFile(path)
    groups = range(source.num_row_groups)
    first = source.read_row_group(0, use_threads=False)
    with parquet_writer(str(path.with_name(f"new-{path.name}")), first.schema, TaskSettings(), first) as writer:
        writer.write_table(first)
        for number in groups[1:]:
            writer.write_table(source.read_row_group(number, use_threads=False))
