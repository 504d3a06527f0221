"""Makes, reads, changes and repairs tables by public names alone, so that other releases can run it, too.

A job of ``make`` that is to be left unfinished runs in a child process, which kills itself by SIGKILL. What a release
wrote is kept in ``tables/<release>/``, made by its own code::

    git worktree add --detach ../before 9c0ecf0
    PYTHONPATH=../before/src python tests/stores/table_program.py make tests/stores/tables/0.1

They are archives because a heartbeat's age is its file's time of change, which git does not keep.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

import anyio
import anyio.to_thread
import pyarrow as pa
import pyarrow.parquet as pq

import tallymark

COLUMNS: dict[str, pa.DataType] = {"id": pa.int64(), "part": pa.string(), "payload": pa.string()}
SCHEMA = pa.schema(COLUMNS)

Ids = Mapping[str, Sequence[int]]
"""The rows of a write or a table: ids by partition."""

EAGER = tallymark.TaskSettings(row_group_bytes=1, compression="none", open_file_count=1)
"""Rows are encoded as they are written, so that a killed task leaves the first half of a file."""

FILLING = tallymark.SizingSettings(rewrite_budget=1000)
"""Every file here is small, and is filled by the next append to its partition."""


async def make_committed(folder: str) -> None:
    """Every kind of commit, a clean and a checkpoint; nothing is in flight."""
    retained: dict[str, Any] = {"readers": "table", "retain_hours": 876_000}
    await append(folder, {"a": [0, 1, 2], "b": [3, 4], "c": [5]}, txn="load:1", **retained)
    await overwrite(folder, {"b": [10, 11]})
    await append(folder, {"a": [20], "x=y/ü": [21]}, markers=tallymark.MarkerSettings(kind="direct"))
    await append(folder, {"a": [30, 31]}, fill=True)
    await overwrite(folder, {}, partition={"part": "c"})
    await clean(folder, retain_hours=0)
    await tallymark.open_table(folder).checkpoint()
    await overwrite(folder, {"b": [40], "d": [41, 42]})
    await append(folder, {"d": [50]}, txn="load:2")


async def make_killed_before_commit(folder: str) -> None:
    """Two jobs of one process, killed in the middle of a file: one filled a small file, one replaced partitions."""
    await append(folder, {"a": [0, 1], "b": [2], "c": [3]})
    leave("killed_before_commit", folder)


async def make_killed_after_entry(folder: str) -> None:
    """A job whose process was killed when it had put its log entry: no projection, and replaced files remain."""
    await append(folder, {"a": [0, 1], "b": [2], "c": [3]})
    leave("killed_after_entry", folder)


async def make_job(folder: str) -> None:
    """A job whose driver was killed while its tasks had written; beside its table its ticket and their reports."""
    await append(f"{folder}/table", {"a": [0, 1], "b": [2], "c": [3]})
    leave("job", folder)


async def make_archived(folder: str) -> None:
    """Commits of which the log keeps the last ones."""
    for number in range(24):
        await append(folder, {"a": [number]}, txn=f"daily:{number}", settings=short())


def short() -> dict[str, Any]:
    """The settings of a table that is archived after few commits."""
    return {
        "commit": tallymark.CommitSettings(log_entry_count=2, timeline_commit_count=2),
        "views": tallymark.ViewSettings(checkpoint_entries=2),
    }


TABLES = {
    "committed": make_committed,
    "archived": make_archived,
    "killed_before_commit": make_killed_before_commit,
    "killed_after_entry": make_killed_after_entry,
    "job": make_job,
}


def leave(unfinished: str, folder: str) -> None:
    ended = subprocess.run([sys.executable, __file__, "leave", unfinished, folder], check=False, timeout=120)
    assert ended.returncode == -signal.SIGKILL, ended


async def killed_before_commit(folder: str) -> None:
    direct = tallymark.MarkerSettings(kind="direct")
    async with job(folder, mode="append", sizing=FILLING) as fill, job(folder, mode="overwrite", markers=direct) as new:
        await write_tasks(fill, {"a": [60, 61], "e": [62]})
        await write_tasks(new, {"b": [70], "c": [71]})
        await write_tasks(fill, {"e": [63, 64]}, task=1, until_killed=True)


async def killed_after_entry(folder: str) -> None:
    backend = KillingBackend(tallymark.open_backend(folder))
    async with job(folder, backend=backend, mode="overwrite") as new:
        await new.commit([await write_tasks(new, {"b": [80, 81], "e": [82]})])


async def killed_with_reports(folder: str) -> None:
    direct = tallymark.MarkerSettings(kind="direct")
    async with job(f"{folder}/table", mode="append", markers=direct, sizing=FILLING) as write:
        for task, rows in enumerate(({"b": [60], "e": [61, 62]}, {"f": [63]})):
            report = await write_tasks(write, rows, task=task)
            Path(f"{folder}/report-{task}").write_bytes(report.encode())
        Path(f"{folder}/ticket").write_bytes(write.ticket.encode())
        os.kill(os.getpid(), signal.SIGKILL)


UNFINISHED = {
    "killed_before_commit": killed_before_commit,
    "killed_after_entry": killed_after_entry,
    "job": killed_with_reports,
}


class KillingBackend:
    """Storage whose user is killed once it has put a log entry."""

    def __init__(self, inner: tallymark.Backend) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def put_new(self, path: str, data: bytes) -> None:
        await self._inner.put_new(path, data)
        if path.startswith(".hoodie/.tallymark/log/"):
            os.kill(os.getpid(), signal.SIGKILL)


def job(
    folder: str,
    *,
    backend: Any = None,
    mode: Literal["append", "overwrite"],
    settings: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    if mode == "overwrite":
        options.setdefault("partition_overwrite", "dynamic")
    table = tallymark.open_table(folder, backend=backend, **settings or {})
    return table.write(schema=SCHEMA, mode=mode, partition_by=["part"], tasks=EAGER, **options)


async def write_tasks(
    write: tallymark.WriteJob, rows: Ids, *, task: int = 0, until_killed: bool = False
) -> tallymark.TaskReport:
    """Run a task in a thread, as its job has planned its files."""
    counts = tuple(tallymark.IncomingRows(f"part={part}", len(ids)) for part, ids in rows.items() if "/" not in part)
    plan = await write.size(tallymark.WorkloadProfile(incoming=counts))
    run = partial(
        tallymark.write_task, write.ticket, batches(rows, until_killed=until_killed), task=task, planned=plan.files
    )
    return await anyio.to_thread.run_sync(run)


def batches(rows: Ids, *, until_killed: bool) -> Iterator[pa.RecordBatch]:
    """One per row."""
    for part, ids in rows.items():
        for number in ids:
            yield pa.RecordBatch.from_pylist([{"id": number, "part": part, "payload": f"row {number}"}], schema=SCHEMA)
            if until_killed and number == ids[-1]:
                os.kill(os.getpid(), signal.SIGKILL)


async def append(folder: str, rows: Ids, *, fill: bool = False, **options: Any) -> dict[str, Any]:
    """Append these rows, also to small files where ``fill`` is set."""
    if fill:
        options["sizing"] = FILLING
    async with job(folder, mode="append", **options) as write:
        reports = [] if write.committed else [await write_tasks(write, rows)]
        return described(await write.commit(reports))


async def overwrite(folder: str, rows: Ids, **options: Any) -> dict[str, Any]:
    """Replace the partitions of these rows, or the one that is named."""
    async with job(folder, mode="overwrite", **options) as write:
        return described(await write.commit([await write_tasks(write, rows)] if rows else []))


def described(result: tallymark.WriteResult) -> dict[str, Any]:
    return {"position": result.position, "is_rerun": result.is_rerun, "pending": result.pending}


async def fail(folder: str, rows: Ids) -> None:
    """A job that its own process rolls back."""
    async with job(folder, mode="append") as write:
        await write_tasks(write, rows)


async def read(folder: str, as_of: int | None = None) -> dict[str, list[int]]:
    """Read the ids by partition; each row's payload is checked."""
    snapshot = await tallymark.open_table(folder).snapshot(as_of)
    found: dict[str, list[int]] = {}
    for file in snapshot.files:
        rows = pq.read_table(Path(folder) / file.path, columns=["id", "payload"], partitioning=None).to_pylist()
        assert [row["payload"] for row in rows] == [f"row {row['id']}" for row in rows], rows
        found.setdefault(unquote(file.partition.removeprefix("part=")), []).extend(row["id"] for row in rows)
    return {part: sorted(ids) for part, ids in sorted(found.items())}


async def timeline(folder: str) -> list[str]:
    return [entry.operation for _, entry in await tallymark.open_table(folder).timeline()]


async def open_instants(folder: str) -> int:
    return len(await tallymark.open_table(folder).open_instants())


async def rollback(folder: str) -> list[str]:
    return sorted(ended.outcome for ended in await tallymark.open_table(folder).rollback())


async def clean(folder: str, retain_hours: float | None = None) -> dict[str, Any]:
    result = await tallymark.open_table(folder).clean(retain_hours=retain_hours)
    return {"ended": sorted(ended.outcome for ended in result.ended), "files": result.files}


async def work(folder: str, ticket: str, rows: Ids, task: int = 0) -> str:
    """Run a task with the ticket of a job in this table; both it and the report returned are hexadecimal."""
    received = replace(tallymark.WriteTicket.decode(bytes.fromhex(ticket)), url=folder)
    run = partial(tallymark.write_task, received, batches(rows, until_killed=False), task=task)
    return (await anyio.to_thread.run_sync(run)).encode().hex()


async def reported(folder: str, report: str) -> dict[str, Any]:
    """Show a report of a task of this table."""
    read = tallymark.TaskReport.decode(bytes.fromhex(report))
    sizes = {file.path: (Path(folder) / file.path).stat().st_size for file in read.files}
    assert sizes == {file.path: file.bytes for file in read.files}
    return {"task": read.task, "rows": {file.partition: file.rows for file in read.files}, "fills": len(read.fills)}


ACTIONS: dict[str, Callable[..., Awaitable[Any]]] = {
    action.__name__: action
    for action in (append, overwrite, fail, read, timeline, open_instants, rollback, clean, work, reported)
}


def run(action: str, folder: str, **arguments: Any) -> Any:
    return anyio.run(partial(ACTIONS[action], folder, **arguments), backend="trio")


def make(name: str, folder: Path) -> None:
    anyio.run(TABLES[name], str(folder), backend="trio")


def make_older(folder: Path) -> None:
    """Shift a table to an hour ago, when its dead writers still sent heartbeats."""
    for path in folder.rglob("*"):
        times = path.stat()
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns - 3600 * 10**9))


def make_archives(into: Path) -> None:
    """Make each table, and pack it with the times of its files."""
    for name in TABLES:
        folder = into / name
        make(name, folder)
        make_older(folder)
        with tarfile.open(into / f"{name}.tar.xz", "w:xz") as archive:
            archive.add(folder, name, filter=without_owner)
        shutil.rmtree(folder)


def without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def main(command: str, *arguments: str) -> None:
    match command:
        case "make":
            make_archives(Path(arguments[0]))
        case "leave":  # as a machine that no reader can take for its own
            socket.gethostname = lambda: "elsewhere.example"
            anyio.run(UNFINISHED[arguments[0]], arguments[1], backend="trio")
        case _:
            print(json.dumps(run(command, arguments[0], **json.loads(arguments[1]))))


if __name__ == "__main__":
    main(*sys.argv[1:])
