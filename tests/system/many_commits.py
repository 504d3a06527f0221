"""Many commits of many files through a proxy that loses, refuses, tears and delays requests; judged around the library.

Two writers commit at the same time to one table, each into partitions of its own, mostly appends, and sometimes an
overwrite of what it has written: no two of them exclude each other, so every ConflictError is a lie. Tasks are the
engine's ``write_task`` in threads, tried again as an engine would.

As a program it plays the number of commits that a release is accepted by::

    python -m tests.system.many_commits --store s3 --commits 50 --files 200
"""

import argparse
import io
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import anyio
import anyio.to_thread
import pyarrow as pa
import pyarrow.parquet as pq

import tallymark
from tallymark.backends import BackendError, StorageOptions
from tallymark.engine.settings import TaskSettings
from tests.support.process import await_that
from tests.support.services.fault_plan import Chance
from tests.support.services.fault_proxy import FaultProxy, fault_proxy
from tests.support.services.gcs_facade import GcsFacade, gcs_facade
from tests.support.services.s3_server import ENVIRONMENT, S3Server, s3_server
from tests.table_invariants import committed_files, fences, log_entries, table_is_at_rest

RATE = 0.05
"""Of each kind of fault: there are seven."""
WRITERS = 2
TASKS = 4
"""Of each write, at the same time."""
OVERWRITE_EVERY = 5
ROWS = 3
"""In each file."""
ATTEMPTS = 4
"""Of a task, as in Spark."""
PATIENCE_S = 2.0
"""How long the client waits for an answer."""
LONG_DELAY, LONG_DELAY_S = 0.1, 3.0
"""The part of the delays that outlast the client's patience."""

COLUMNS: list[tuple[str, pa.DataType]] = [("id", pa.int64()), ("writer", pa.string()), ("part", pa.int32())]
SCHEMA = pa.schema(COLUMNS)

Server = S3Server | GcsFacade
Row = tuple[int, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    commits: int
    files: int
    """In each commit."""
    seed: int = 1

    @property
    def parts(self) -> int:
        """Partitions of one writer: each task writes one file in each."""
        return self.files // TASKS


@dataclass(slots=True)
class Story:
    """What happened, as the writers were told."""

    results: list[tallymark.WriteResult] = field(default_factory=list)
    rows: dict[tuple[str, int], list[Row]] = field(default_factory=dict)
    """By partition, those that were committed and not replaced."""
    trouble: Counter[str] = field(default_factory=Counter)
    """What the callers of the library had to answer: by the call and the class of the error."""
    conflicts: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(slots=True)
class Writer:
    name: str
    table: tallymark.Table
    size: Size
    story: Story
    written: int = 0

    async def write(self) -> None:
        """One commit, begun again for as long as nothing of it was committed."""
        number = self.written = self.written + 1
        is_overwrite = number % OVERWRITE_EVERY == 0
        while (result := await self._tried(number, is_overwrite=is_overwrite)) is None:
            pass
        self.story.results.append(result)
        for part in range(self.size.parts):
            rows = [row for task in range(TASKS) for row in self._rows(number, task, part)]
            kept = [] if is_overwrite else self.story.rows.get((self.name, part), [])
            self.story.rows[self.name, part] = kept + rows

    async def _tried(self, number: int, *, is_overwrite: bool) -> tallymark.WriteResult | None:
        result: tallymark.WriteResult | None = None
        try:
            async with self.table.write(
                schema=SCHEMA,
                mode="overwrite" if is_overwrite else "append",
                partition_overwrite="dynamic" if is_overwrite else "static",
                partition_by=["writer", "part"],
                tasks=TaskSettings(publish_pause_s=0.1),
            ) as job:
                reports = await self._reports(job.ticket, number)
                result = await self._committed(job, reports)
        except tallymark.ConflictError as error:
            self.story.conflicts.append(str(error))
        except tallymark.TallymarkError as error:
            self.story.trouble[f"write {type(error).__name__}"] += 1
            logging.getLogger(__name__).warning("write tried again: %r", error)
        return result

    async def _committed(
        self, job: tallymark.WriteJob, reports: Sequence[tallymark.TaskReport]
    ) -> tallymark.WriteResult:
        """Called again with the same reports until the outcome is clear."""
        while True:
            try:
                return await job.commit(reports)
            except (tallymark.CommitUnknown, BackendError) as error:
                self.story.trouble[f"commit {type(error).__name__}"] += 1
                logging.getLogger(__name__).warning("commit called again: %r", error)

    async def _reports(self, ticket: tallymark.WriteTicket, number: int) -> list[tallymark.TaskReport]:
        reports: list[tallymark.TaskReport] = []

        async def run(task: int) -> None:
            rows = [row for part in range(self.size.parts) for row in self._rows(number, task, part)]
            reports.append(await anyio.to_thread.run_sync(self._task, ticket, task, rows))

        async with anyio.create_task_group() as group:
            for task in range(TASKS):
                group.start_soon(run, task)
        return reports

    def _task(self, ticket: tallymark.WriteTicket, task: int, rows: Sequence[Row]) -> tallymark.TaskReport:
        """As an engine runs it: a failed attempt is followed by another."""
        columns = dict(zip(SCHEMA.names, zip(*rows, strict=True), strict=True))
        table = pa.table({name: list(column) for name, column in columns.items()}, schema=SCHEMA)
        for attempt in range(ATTEMPTS - 1):
            try:
                return tallymark.write_task(ticket, table, task=task, attempt=attempt)
            except tallymark.TallymarkError as error:
                self.story.trouble[f"task {type(error).__name__}"] += 1
                logging.getLogger(__name__).warning("task tried again: %r", error)
        return tallymark.write_task(ticket, table, task=task, attempt=ATTEMPTS - 1)

    def _rows(self, number: int, task: int, part: int) -> list[Row]:
        first = ((number * TASKS + task) * self.size.parts + part) * ROWS
        return [(first + row, self.name, part) for row in range(ROWS)]


@dataclass(slots=True)
class Scene:
    """A table in a bucket, behind a proxy; and the bucket as it is without one."""

    server: Server
    bucket: str
    proxy: FaultProxy
    story: Story = field(default_factory=Story)

    @property
    def options(self) -> StorageOptions:
        return replace(self.server.behind(self.proxy.endpoint), request_timeout_s=PATIENCE_S)

    @property
    def url(self) -> str:
        return f"{'s3' if isinstance(self.server, S3Server) else 'gs'}://{self.bucket}/table"

    def objects(self) -> dict[str, bytes]:
        """Of the table, found by listing the bucket and getting each object, around the library and the proxy."""
        found = self.server.objects(self.bucket, "table/")
        return {key.removeprefix("table/"): data for key, data in found.items()}


def play(scene: Scene, size: Size) -> None:
    """Commit so often amid faults; afterwards, in fair weather, put the table in order as any later writer would.

    What a writer could not finish in time is finished by name, as an operator may: its lease would run for minutes yet.
    """
    began = time.monotonic()
    scene.proxy.let_chance(
        Chance(size.seed, RATE, long_delay=LONG_DELAY, long_delay_s=LONG_DELAY_S, bytes_per_s=256 * 1024.0)
    )
    anyio.run(partial(_play, scene, size), backend="trio")
    scene.story.seconds = time.monotonic() - began
    await_that(lambda: not scene.proxy.under_way, "what was delayed has landed")
    scene.proxy.let_chance(None)
    anyio.run(_put_in_order, scene, backend="trio")


async def _put_in_order(scene: Scene) -> None:
    table = tallymark.open_table(scene.url, options=scene.options)
    for left in await table.open_instants():
        scene.story.trouble["left unfinished"] += 1
        await table.rollback(left.instant)
    await table.clean()


async def _play(scene: Scene, size: Size) -> None:
    table = tallymark.open_table(scene.url, options=scene.options)
    writers = [Writer(f"w{number}", table, size, scene.story) for number in range(WRITERS)]
    left = iter(range(size.commits))

    async def write(writer: Writer) -> None:
        for _ in left:
            await writer.write()

    async with anyio.create_task_group() as group:
        for writer in writers:
            group.start_soon(write, writer)


def judge(scene: Scene, size: Size) -> None:
    """All promises hold, by a listing around the library; nobody was told of a conflict; rows are as committed."""
    objects, story = scene.objects(), scene.story
    assert story.conflicts == []
    assert len(story.results) == size.commits
    assert [result.files for result in story.results] == [size.parts * TASKS] * size.commits
    table_is_at_rest(objects)
    decided = [entry["instant"] for entry in log_entries(objects) if entry["kind"] == "commit"]
    assert sorted(decided) == sorted(result.instant for result in story.results)
    expected = sorted(row for rows in story.rows.values() for row in rows)
    assert rows_in(objects) == expected


def rows_in(objects: dict[str, bytes]) -> list[Row]:
    """Of the committed files, sorted; the partition columns stand in their paths."""
    rows: list[Row] = []
    for path in committed_files(objects):
        writer, part, _ = path.split("/")
        ids = pq.read_table(io.BytesIO(objects[path]), partitioning=None)["id"].to_numpy()
        rows += [(int(found), writer.removeprefix("writer="), int(part.removeprefix("part="))) for found in ids]
    return sorted(rows)


@contextmanager
def scene_of(server: Server) -> Iterator[Scene]:
    """A table of its own on the server."""
    bucket = server.bucket()
    with fault_proxy(server.endpoint) as proxy:
        yield Scene(server, bucket, proxy)
    server.drop(bucket)


def summary(scene: Scene, size: Size) -> str:
    requests, faults = scene.proxy.requests, scene.proxy.faults
    files = sum(result.files for result in scene.story.results)
    lines = [
        f"{size.commits} commits, {files} files, seed {size.seed}: {scene.story.seconds:.0f} s",
        f"requests: {requests.total()} ({_counted(requests)})",
        f"faults: {faults.total()} ({_counted(faults)})",
        f"answered by callers: {_counted(scene.story.trouble) or 'nothing'}",
        f"conflicts: {len(scene.story.conflicts)}",
        f"markers: {sum(result.markers for result in scene.story.results)}, fences: {len(fences(scene.objects()))}",
    ]
    return "\n".join(lines)


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store", choices=("s3", "gcs"), default="s3")
    parser.add_argument("--commits", type=int, default=50)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="show what the library logs")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO if arguments.verbose else logging.ERROR)
    size = Size(commits=arguments.commits, files=arguments.files, seed=arguments.seed)
    with _server(arguments.store) as server, scene_of(server) as scene:
        try:
            play(scene, size)
        finally:
            sys.stdout.write(summary(scene, size) + "\n")
        judge(scene, size)
    sys.stdout.write("every promise held\n")


@contextmanager
def _server(store: Literal["s3", "gcs"]) -> Iterator[Server]:
    """With the credentials that clients of it find in the environment."""
    os.environ.update(ENVIRONMENT)
    with s3_server() if store == "s3" else gcs_facade() as server:
        yield server


if __name__ == "__main__":
    main()
