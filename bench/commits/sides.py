"""Writers of each format, as the load generator drives them: one commit per request."""

import asyncio
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import anyio.to_thread
import pyarrow as pa
import pyarrow.parquet as pq

from tallymark.backends import Backend, Unavailable, open_backend
from tallymark.bench.load import Target
from tallymark.bench.loopback import credentials
from tallymark.bench.peers.disk import Disk, sync
from tallymark.bench.stores import options_of
from tallymark.engine.errors import TryAgain
from tallymark.engine.table import Table, open_table
from tallymark.engine.tasks.task_writer import write_task

ROWS = 100
"""Of each commit."""

_FIELDS: list[tuple[str, pa.DataType]] = [("id", pa.int64()), ("v", pa.float64()), ("s", pa.string())]

SCHEMA = pa.schema(_FIELDS)

FLOOR_BYTES = 3072
"""About the size of the Parquet file of ``ROWS`` rows."""

SQLITE_TIMEOUT_S = 60
"""Wait of a writer for the lock of the catalog, which all writers use in turn."""


def batches(series: int, rows: int = ROWS) -> Iterator[pa.Table]:
    """Yield the rows of one commit after the other. No id occurs twice in a table."""
    values, texts = pa.array([number / 8 for number in range(rows)]), pa.array([f"row {n}" for n in range(rows)])
    for first in count(series << 32, rows):
        yield pa.table([pa.array(range(first, first + rows), pa.int64()), values, texts], schema=SCHEMA)


class Writer(ABC):
    """A writer with its own table object. Opening it makes the table if there is none, and one commit.

    ``rows`` of the target are those of each commit, if not ``ROWS``.
    """

    style = "thread"
    title: str
    package: str | None = None
    is_local = False
    """Whether it needs a folder of this machine."""

    def __init__(self, target: Target, series: int) -> None:
        self._size: int = target.get("rows", ROWS)
        self._batches = batches(series, self._size)
        self._commits = self._refused = 0
        self.opened = ExitStack()
        self._open(target)
        self.ask()

    def ask(self) -> None:
        """Return once the next rows are committed."""
        rows = next(self._batches)
        while not self._append(rows):
            self._refused += 1
        self._commits += 1

    def statistics(self) -> dict[str, float]:
        return {"commits": self._commits, "refused": self._refused, "committed": self._size * self._commits}

    @abstractmethod
    def _open(self, target: Target) -> None: ...

    @abstractmethod
    def _append(self, rows: pa.Table) -> bool:
        """Return whether the rows are committed; False if the format has given up, and nothing is."""

    @abstractmethod
    def rows(self) -> int:
        """Return the rows of the table's files now, by the format's own reader."""


async def append(table: Table, rows: pa.Table, backend: Backend | None = None) -> bool:
    """Append as a job of one task; see ``Writer._append``. ``backend`` is that of a table in memory."""
    try:
        async with table.write(mode="append", schema=SCHEMA) as job:
            report = await anyio.to_thread.run_sync(partial(write_task, job.ticket, rows, task=0, backend=backend))
            await job.commit([report])
    except (TryAgain, Unavailable):
        return False
    return True


class TallymarkWriter(Writer):
    title = "Tallymark"

    def _open(self, target: Target) -> None:
        self._loop = self.opened.enter_context(asyncio.Runner())
        self._table = open_table(target["table"], options=options_of(target))
        self._backend = open_backend(target["table"], options=options_of(target))

    def _append(self, rows: pa.Table) -> bool:
        return self._loop.run(append(self._table, rows))

    def rows(self) -> int:
        return self._loop.run(self._rows())

    async def _rows(self) -> int:
        files = (await self._table.snapshot()).files
        contents = await asyncio.gather(*(self._backend.get(file.path) for file in files))
        return sum(pq.read_metadata(pa.BufferReader(content)).num_rows for content in contents)


class DeltaWriter(Writer):
    title = package = "deltalake"

    def _open(self, target: Target) -> None:
        from deltalake import DeltaTable

        s3 = _s3(target, "aws_endpoint", "aws_region", "aws_access_key_id", "aws_secret_access_key")
        options = {**s3, "aws_allow_http": "true"} if s3 else None
        self._table = DeltaTable.create(target["table"], SCHEMA, mode="ignore", storage_options=options)

    def _append(self, rows: pa.Table) -> bool:
        from deltalake import write_deltalake
        from deltalake.exceptions import CommitFailedError

        try:
            write_deltalake(self._table, rows, mode="append")
        except CommitFailedError:
            self._table.update_incremental()
            return False
        return True

    def rows(self) -> int:
        self._table.update_incremental()
        return self._table.to_pyarrow_table(columns=["id"]).num_rows


class SyncedDeltaWriter(DeltaWriter):
    """A commit of deltalake, and then what makes it durable on a disk."""

    title, is_local = "deltalake + fsync", True

    def _open(self, target: Target) -> None:
        super()._open(target)
        self._folder = Path(target["table"])

    def _append(self, rows: pa.Table) -> bool:
        is_committed = super()._append(rows)
        if is_committed:
            entry = self._folder / "_delta_log" / f"{self._table.version():020}.json"
            actions = map(json.loads, entry.read_text().splitlines())
            [data_file] = [self._folder / action["add"]["path"] for action in actions if "add" in action]
            for path in (data_file, self._folder, entry, entry.parent):
                sync(path)
        return is_committed


class IcebergWriter(Writer):
    """Its catalog is SQLite, in a file beside the logs of the run."""

    title = package = "pyiceberg"

    def _open(self, target: Target) -> None:
        # Otherwise Arrow sends checksums behind bodies, by a transfer encoding that the stand-in does not know.
        os.environ.setdefault("AWS_REQUEST_CHECKSUM_CALCULATION", "WHEN_REQUIRED")
        from pyiceberg.catalog.sql import SqlCatalog

        s3 = _s3(target, "s3.endpoint", "s3.region", "s3.access-key-id", "s3.secret-access-key")
        uri = f"sqlite:///{target['catalog']}?timeout={SQLITE_TIMEOUT_S}"
        catalog = self.opened.enter_context(SqlCatalog("bench", uri=uri, warehouse=target["table"], **s3))
        catalog.create_namespace_if_not_exists("bench")
        self._table = catalog.create_table_if_not_exists("bench.table", SCHEMA)

    def _append(self, rows: pa.Table) -> bool:
        from pyiceberg.exceptions import CommitFailedException

        try:
            self._table.append(rows)
        except CommitFailedException:
            self._table.refresh()
            return False
        return True

    def rows(self) -> int:
        return self._table.refresh().scan(selected_fields=("id",)).to_arrow().num_rows


class FloorWriter(Writer):
    """One file per commit, synced under another name and renamed, and its folder synced."""

    title, is_local = "write + fsync + rename + fsync", True

    def _open(self, target: Target) -> None:
        self._disk = Disk(Path(target["table"]))

    def _append(self, rows: pa.Table) -> bool:
        self._disk.put(str(rows["id"][0]), bytes(FLOOR_BYTES))
        return True

    def rows(self) -> int:
        return self._size * self._disk.list("")


def _s3(target: Target, *names: str) -> Mapping[str, str]:
    """Return endpoint, region, key id and secret of the stand-in under these names; nothing for a folder."""
    options, keys = target["options"], credentials()
    if options["endpoint"] is None:
        return {}
    values = (options["endpoint"], options["region"], keys["access_key_id"], keys["secret_access_key"])
    return dict(zip(names, map(str, values), strict=True))


SIDES: dict[str, type[Writer]] = {
    "ours": TallymarkWriter,
    "delta": DeltaWriter,
    "delta-synced": SyncedDeltaWriter,
    "iceberg": IcebergWriter,
    "floor": FloorWriter,
}


def is_installed(side: type[Writer]) -> bool:
    return side.package is None or find_spec(side.package) is not None
