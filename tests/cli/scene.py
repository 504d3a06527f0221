"""A table of flights on a local disk, writers that live or die on it, and the command line over it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pyarrow as pa
from click.testing import CliRunner, Result

import tallymark
from tallymark.cli import main

SCHEMA = pa.schema([pa.field("month", pa.int32(), nullable=False), pa.field("flight", pa.int64())])


def run(*arguments: str | Path, answer: str | None = None) -> Result:
    """A command, as typed; ``answer`` is what its caller types then."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=answer)


def run_json(*arguments: str | Path) -> Any:
    """A command that succeeds; its whole output is one JSON document."""
    result = run(*arguments, "--json")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return json.loads(result.stdout)


def flights(*months: int) -> pa.Table:
    """Three flights in each month."""
    rows = [{"month": month, "flight": 100 * month + number} for month in months for number in range(3)]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@asynccontextmanager
async def written(folder: Path, *months: int, **how: Any) -> AsyncIterator[tuple[tallymark.WriteJob, list[Any]]]:
    """A job whose one task is done and whose commit is still to come."""
    how = {"mode": "append", "partition_by": ["month"], **how}
    async with tallymark.open_table(str(folder)).write(schema=SCHEMA, **how) as job:
        rows = flights(*months)
        report = await anyio.to_thread.run_sync(partial(tallymark.write_task, job.ticket, rows.to_batches(), task=0))
        yield job, [report]


def write(folder: Path, *months: int, **how: Any) -> tallymark.WriteResult:
    async def write_once() -> tallymark.WriteResult:
        async with written(folder, *months, **how) as (job, reports):
            return await job.commit(reports)

    return anyio.run(write_once, backend="trio")


def die_writing(folder: Path, *months: int) -> str:
    """Another process writes these months and is killed before it commits; returns its instant."""
    root = Path(__file__).parents[2]
    program = f"from tests.cli.scene import write_and_die; write_and_die({str(folder)!r}, {months})"
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=root, stdout=subprocess.PIPE, text=True, check=False, timeout=120
    )
    assert ended.returncode == -signal.SIGKILL
    return ended.stdout.strip()


def write_and_die(folder: str, months: tuple[int, ...]) -> None:
    async def die() -> None:
        async with written(Path(folder), *months) as (job, _):
            print(job.instant, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    anyio.run(die, backend="trio")


def data_files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")}
