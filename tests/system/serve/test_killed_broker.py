"""Producers of one table and the service that decides their commits are killed (SIGKILL) again and again: each row that
was acked is there once, and no row is there twice.

A producer that was killed repeats its last call, under the same txn, or as the same batch of its stream.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

import anyio
import anyio.to_thread
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallymark
from tallymark.backends import StorageOptions, Unavailable, open_backend
from tallymark.engine.errors import CommitUnknown, TryAgain
from tallymark.engine.settings import CommitSettings, LeaseSettings, SharedServiceSettings, StreamSettings
from tallymark.engine.table import Table
from tests.support.services.s3_server import S3Server
from tests.support.storage import objects
from tests.system.forked import Fork, Start, forking
from tests.system.marker_service import s3_credentials
from tests.system.serve.test_killed_serve import Service
from tests.table_invariants import table_is_at_rest

_FIELDS: list[tuple[str, pa.DataType]] = [("producer", pa.string()), ("number", pa.int64())]

SCHEMA = pa.schema(_FIELDS)
ROWS = 3
"""Of each call."""
LEASE = LeaseSettings(heartbeat_interval_s=0.5, expiry_s=4.0)
COMMIT = CommitSettings(log_entry_count=1 << 20)
"""The outcome of a txn that is repeated is still in the log."""
STREAM = StreamSettings(flush_interval_s=0.05)
PRODUCERS = ("served-1", "served-2", "served-3", "alone", "stream")

KILLS = [pytest.param(12, id="12 kills"), pytest.param(200, id="200 kills", marks=pytest.mark.release)]


def rows(producer: str, number: int) -> pa.Table:
    return pa.table([pa.array([producer] * ROWS), pa.array([number] * ROWS)], schema=SCHEMA)


def produce(line: Connection, url: str, options: StorageOptions, service: str, name: str, journal: str) -> None:
    """Append until a line comes, and record each call before it is made, and when it has returned."""
    table = tallymark.open_table(url, options=options, lease=LEASE, commit=COMMIT)
    asked, acked = calls_of(Path(journal))
    number = asked if asked not in acked else asked + 1
    with Path(journal).open("ab", buffering=0) as file:

        async def main() -> None:
            if name == "stream":
                async with table.stream(schema=SCHEMA, settings=STREAM) as stream:
                    await run(lambda number: stream.append(rows(name, number), producer=name, sequence=number))
            else:
                shared = None if name == "alone" else SharedServiceSettings(url=service, wait_s=1.0, commit_wait_s=1.0)
                await run(partial(append, table, shared, name))

        async def run(call: Callable[[int], Awaitable[object]]) -> None:
            nonlocal number
            while number == asked or not line.poll():  # a call that may not have returned is repeated in any case
                file.write(f"asked {number}\n".encode())
                while True:
                    try:
                        await call(number)
                        break
                    except (TryAgain, Unavailable, CommitUnknown):
                        await anyio.sleep(0.05)
                file.write(f"acked {number}\n".encode())
                number += 1

        anyio.run(main, backend="trio")


async def append(table: Table, service: SharedServiceSettings | None, name: str, number: int) -> None:
    async with table.write(schema=SCHEMA, mode="append", txn=f"{name}:{number}", service=service) as job:
        write = partial(tallymark.write_task, job.ticket, rows(name, number), task=0)
        await job.commit([] if job.committed is not None else [await anyio.to_thread.run_sync(write)])


def calls_of(journal: Path) -> tuple[int, set[int]]:
    """Return the last call that was made, and those that have returned."""
    calls = [line.split() for line in journal.read_text().splitlines()] if journal.exists() else []
    asked = [int(number) for word, number in calls if word == "asked"]
    return max(asked, default=0), {int(number) for word, number in calls if word == "acked"}


class Producers:
    """One process for each, which starts again whenever it was killed."""

    def __init__(self, start: Start, folder: Path, *arguments: object) -> None:
        self._start, self._folder, self._arguments = start, folder, arguments
        self._forks = {name: self._started(name) for name in PRODUCERS}

    def _started(self, name: str) -> Fork:
        return self._start(produce, *self._arguments, name, str(self._folder / name))

    def kill(self, name: str) -> None:
        assert not self._forks[name].has_said(object), "it fails by itself with its traceback"
        self._forks[name].kill()
        self._forks[name].end()
        self._forks[name] = self._started(name)

    def finish(self) -> dict[str, set[int]]:
        """Let each make its last call, and return all calls."""
        for fork in self._forks.values():
            fork.tell("enough")
        for name, fork in self._forks.items():
            assert fork.wait() == 0, name
        acked = {}
        for name in PRODUCERS:
            asked, acked[name] = calls_of(self._folder / name)
            assert acked[name] == set(range(asked + 1)), name
        return acked


def play(folder: Path, root: str, url: str, options: StorageOptions, arguments: list[str], kills: int) -> None:
    random = Random(kills)
    service = Service(root, folder / "secret", arguments)
    try:
        anyio.run(append, tallymark.open_table(url, options=options), None, "first", 0, backend="trio")
        with forking() as start:
            producers = Producers(start, folder, url, options, service.settings.url)
            for _ in range(kills):
                time.sleep(random.uniform(0.1, 0.9))  # noqa: TID251  # between the strikes of a director
                if random.random() < 0.4:
                    service.kill()
                    time.sleep(random.choice((0.0, 0.0, 1.5)))  # noqa: TID251
                    service.start()
                else:
                    producers.kill(random.choice(PRODUCERS))
            acked = producers.finish()
    finally:
        service.kill()
    found = anyio.run(read, url, options, backend="trio")
    wanted = {(name, number): ROWS for name, numbers in {**acked, "first": {0}}.items() for number in numbers}
    print({name: len(numbers) for name, numbers in acked.items()})
    assert found == wanted, {"lost": wanted.keys() - found.keys(), "unknown": found.keys() - wanted.keys()}


async def read(url: str, options: StorageOptions) -> Counter[tuple[str, int]]:
    """Return how often each row is in the table, after instants of killed producers were ended."""
    table, backend = tallymark.open_table(url, options=options, lease=LEASE), open_backend(url, options=options)
    await anyio.sleep(LEASE.expiry_s)
    await table.clean()
    found: Counter[tuple[str, int]] = Counter()
    for file in (await table.snapshot()).files:
        there = pq.read_table(pa.BufferReader(await backend.get(file.path)))
        found.update((str(row["producer"]), int(row["number"])) for row in there.to_pylist())
    return found


@pytest.mark.parametrize("kills", KILLS)
def test_acked_rows_are_there_once_on_a_local_disk(tmp_path: Path, kills: int) -> None:
    lake, journals = tmp_path / "lake", tmp_path / "journals"
    journals.mkdir()
    lake.mkdir()
    play(journals, str(lake), str(lake / "t"), StorageOptions(), [], kills)
    table_is_at_rest(objects(lake / "t"))  # but for empty folders of killed processes


@pytest.mark.parametrize("kills", KILLS)
def test_acked_rows_are_there_once_on_s3(s3: S3Server, bucket: str, tmp_path: Path, kills: int) -> None:
    pairs = {"endpoint": s3.options.endpoint, "region": s3.options.region, "path_style": "true"}
    arguments = [part for key, value in pairs.items() for part in ("--storage", f"{key}={value}")]
    options = replace(s3.options, credentials=f"{s3_credentials.__module__}:{s3_credentials.__name__}")
    play(tmp_path, f"s3://{bucket}", f"s3://{bucket}/t", options, arguments, kills)
    table_is_at_rest({key.removeprefix("t/"): data for key, data in s3.objects(bucket).items()})
