"""Question ``history``: objects, requests and time after 10, 100, ... commits."""

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import anyio.to_thread
import pyarrow as pa

import tallymark
from tallymark.backends.contract import Entry
from tallymark.backends.memory import MemoryBackend
from tallymark.bench.results import Chart, Table, column, size

COLUMNS: dict[str, pa.DataType] = {"id": pa.int64(), "part": pa.string()}
SCHEMA = pa.schema(COLUMNS)
BATCH = pa.RecordBatch.from_pylist([{"id": 1, "part": "a"}], schema=SCHEMA)

ROUND = 64
"""Commits in which a checkpoint is due once; each figure is of so many around its position."""

METHOD = f"""\
One writer appends a file of one row at a time to a table in memory, without any latency: what is counted is requests,
and the time is the processor's. Every eighth commit overwrites the partition instead. At each position: the most
objects and bytes below .hoodie, the mean requests and the median time of a commit, over {ROUND} commits; then opening
the table and listing its files, and a clean, once each by a new process's handle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    commits: int = column("commits")
    objects: int = column("objects below .hoodie, at most")
    bytes: int = column("bytes of them", size)
    commit_requests: float = column("requests of a commit")
    commit_s: float = column("s of a commit, median")
    open_requests: int = column("requests of opening")
    open_s: float = column("s of opening")
    clean_requests: int = column("requests of a clean")
    clean_s: float = column("s of a clean")
    title: str = "all"


class CountingBackend:
    """A backend in memory, whose requests are counted."""

    def __init__(self) -> None:
        self._inner = MemoryBackend()
        self.requests: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in ("get", "get_range", "put", "put_new", "delete"):
            self.requests[name] += 1
        return found

    def list(self, directory: str) -> AsyncIterator[Entry]:
        self.requests["list"] += 1
        return self._inner.list(directory)

    async def bookkeeping(self) -> tuple[int, int]:
        """Return the number of objects below .hoodie, and their bytes."""
        sizes = [entry.size async for entry in self._inner.list(".hoodie")]
        return len(sizes), sum(sizes)


async def tables(commits: int, progress: Callable[[str], None]) -> Sequence[Table]:
    backend = CountingBackend()
    wanted = [10**power for power in range(1, len(str(commits)))]
    wanted += [commits] if commits not in wanted else []
    rows, done = [], 0
    for position in wanted:
        while done < max(0, position - ROUND):
            await _commit(backend, done)
            done += 1
            if done % 100 == 0:
                progress(f"history: {done:,} of {commits:,} commits")
        rows.append(await _measured(backend, done, position))
        done = position
    charts = (Chart(values=("objects",), x="commits", axis="commits", is_log=True),)
    return [Table(title="bookkeeping after many commits", rows=rows, charts=charts)]


async def _measured(backend: CountingBackend, done: int, position: int) -> HistoryRow:
    seconds, objects, size_, before = [], 0, 0, backend.requests.total()
    for number in range(done, position):
        started = time.perf_counter()
        await _commit(backend, number)
        seconds.append(time.perf_counter() - started)
        found = await backend.bookkeeping()
        objects, size_ = max(objects, found[0]), max(size_, found[1])
    commit_requests = (backend.requests.total() - before) / (position - done)
    table = partial(tallymark.open_table, "memory:", backend=backend)
    open_requests, open_s = await _once(backend, table().snapshot)
    clean_requests, clean_s = await _once(backend, table().clean)
    return HistoryRow(
        commits=position,
        objects=objects,
        bytes=size_,
        commit_requests=commit_requests,
        commit_s=median(seconds),
        open_requests=open_requests,
        open_s=open_s,
        clean_requests=clean_requests,
        clean_s=clean_s,
    )


async def _once(backend: CountingBackend, act: Callable[[], Any]) -> tuple[int, float]:
    before, started = backend.requests.total(), time.perf_counter()
    await act()
    return backend.requests.total() - before, time.perf_counter() - started


async def _commit(backend: CountingBackend, number: int) -> None:
    table = tallymark.open_table("memory:", backend=backend)
    mode: dict[str, Any] = {"mode": "append"}
    if number % 8 == 7:
        mode = {"mode": "overwrite", "partition_overwrite": "dynamic"}
    direct = tallymark.MarkerSettings(kind="direct")
    async with table.write(schema=SCHEMA, partition_by=["part"], markers=direct, **mode) as job:
        write = partial(tallymark.write_task, job.ticket, [BATCH], task=0, backend=backend)
        await job.commit([await anyio.to_thread.run_sync(write)])
