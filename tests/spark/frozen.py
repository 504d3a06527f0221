"""Tables as they lie on a disk at a chosen moment of a job, so that any reader can look at them in peace."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
import pyarrow as pa

import tallymark
from tallymark.backends.local import LocalBackend
from tests.support.faulty import FaultyBackend, lost_request
from tests.support.storage import data_files

Kind = Literal["directory", "table"]
State = Literal["at rest", "while a job writes", "before replaced files go", "while replaced files go"]

Row = tuple[int, int, str]

COLUMNS: list[tuple[str, pa.DataType]] = [("id", pa.int64()), ("part", pa.int32()), ("tag", pa.string())]
SCHEMA = pa.schema(COLUMNS)


def rows(tag: str, *parts: int) -> set[Row]:
    return {(10 * part + number, part, tag) for part in parts for number in range(2)}


BEFORE = rows("old", 1, 2, 3)
COMMITTED = rows("old", 1) | rows("new", 2, 3)
"""What every table holds: parts 2 and 3 were overwritten."""

REPLACED = BEFORE - COMMITTED
UNCOMMITTED = rows("draft", 1, 4)


def frozen(folder: Path, kind: Kind, state: State) -> Path:
    """A table of this kind, stopped in this state."""
    table = folder / f"{kind} {state}".replace(" ", "_")
    anyio.run(_STATES[state], folder / "live", table, kind, backend="trio")
    shutil.rmtree(folder / "live")
    return table


async def _at_rest(live: Path, table: Path, kind: Kind) -> None:
    await create(live, kind)
    await overwrite(live)
    shutil.copytree(live, table)


async def _writing(live: Path, table: Path, kind: Kind) -> None:
    """Published files of a job that has not committed, and one that a task is still writing."""
    await create(live, kind)
    await overwrite(live)
    async with _written(live, UNCOMMITTED, mode="append") as (job, _):
        backend = LocalBackend(live)
        name = f"part=4/{'0' * 8}-0_9-9-9_{job.instant}.parquet"
        file = backend.new_file(name, staging=job.ticket.staging)
        file.sink.write(b"PAR1 half a file")
        shutil.copytree(live, table)
        file.abandon()


async def _before_replaced_files_go(live: Path, table: Path, kind: Kind) -> None:
    """The log lets them go, readers of the Hudi format see it, and nothing has been deleted yet."""
    await create(live, kind)
    if kind == "directory":
        async with _written(live, rows("new", 2, 3), **_DYNAMICALLY) as (job, reports):
            await job.commit(reports)
            shutil.copytree(live, table)
        return
    await overwrite(live)
    storage = FaultyBackend(LocalBackend(live), lost_request("delete", "part=*"))
    try:
        await tallymark.open_table(live, backend=storage).clean(retain_hours=0)
    except tallymark.Unavailable:
        shutil.copytree(live, table)


async def _while_replaced_files_go(live: Path, table: Path, kind: Kind) -> None:
    await _before_replaced_files_go(live, table, kind)
    entry = (await tallymark.open_table(live).timeline())[1][1]
    gone, stays = sorted(file.path for file in entry.removed)
    (table / gone).unlink()
    assert stays in data_files(table)


_STATES = {
    "at rest": _at_rest,
    "while a job writes": _writing,
    "before replaced files go": _before_replaced_files_go,
    "while replaced files go": _while_replaced_files_go,
}

_DYNAMICALLY: dict[str, Any] = {"mode": "overwrite", "partition_overwrite": "dynamic"}


async def create(table: Path, kind: Kind) -> None:
    """A table that holds the rows of BEFORE."""
    async with _written(table, BEFORE, mode="append", readers=kind) as (job, reports):
        await job.commit(reports)


async def overwrite(table: Path) -> None:
    """From BEFORE to COMMITTED, to the end of the job."""
    async with _written(table, rows("new", 2, 3), **_DYNAMICALLY) as (job, reports):
        await job.commit(reports)


@asynccontextmanager
async def _written(table: Path, content: set[Row], **how: Any) -> AsyncIterator[tuple[tallymark.WriteJob, list[Any]]]:
    """A job whose one task is done and whose commit is still to come."""
    async with tallymark.open_table(table).write(schema=SCHEMA, partition_by=["part"], **how) as job:
        columns = [list(column) for column in zip(*sorted(content), strict=True)]
        batches = pa.table(columns, schema=SCHEMA).to_batches()
        yield job, [await anyio.to_thread.run_sync(partial(tallymark.write_task, job.ticket, batches, task=0))]
