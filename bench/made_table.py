"""Tables that are their metadata only: a commit log that names many files, and no byte of data behind them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from random import Random

import pyarrow as pa

from tallymark.backends.contract import Backend
from tallymark.engine.instants.project import project, put_projected
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.settings import CommitSettings, LeaseSettings
from tallymark.engine.tasks.file_name import new_file_name
from tallymark.engine.timeline.entry import DataFile, LogEntry
from tallymark.engine.timeline.instant import instant_time
from tallymark.engine.timeline.log import new_nonce
from tallymark.engine.timeline.projection import floor_files, projected_files
from tallymark.engine.timeline.properties import PROPERTIES, TableProperties

PARTITIONS = 10_000

COMMITS = 100
"""That a table comes to be in: each adds as many files, to partitions one after the other."""

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
"""When the first of them was."""

SIZE_STEPS = 97
"""Sizes that files have, so that some are small and some are not."""

_SIZE_STEP = 2_500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    files: int
    partitions: int = PARTITIONS
    commits: int = COMMITS

    @property
    def label(self) -> str:
        return f"{self.files:,} files in {min(self.files, self.partitions):,} partitions"

    def entries(self) -> Iterator[LogEntry]:
        """Those that the table comes to be in, from the first to the last. Names of files are new each time."""
        instant, numbers = instant_time(BEGAN), iter(range(self.files))
        for base in range(self.commits):
            instant = instant_time(BEGAN, after=instant)
            chosen = islice(numbers, self.files // self.commits + (base < self.files % self.commits))
            added = tuple(data_file(number % self.partitions, instant, number) for number in chosen)
            yield commit(added, instant=instant, base=base)


def commit(added: Sequence[DataFile], *, instant: str, base: int) -> LogEntry:
    """A plain append of these files."""
    return LogEntry(
        kind="commit", instant=instant, nonce=new_nonce(), base=base, operation="append", added=tuple(added)
    )


def data_file(partition: int, instant: str, number: int) -> DataFile:
    size = _SIZE_STEP * (1 + number % SIZE_STEPS)
    name = new_file_name(instant=instant, task=number % 1000, stage=0, attempt=0)
    return DataFile(f"p={partition:05d}", name, size // 100, size, 3 * size)


class MadeTable:
    """A table by the commit log that jobs write. Belongs to one event loop."""

    def __init__(self, backend: Backend, shape: TableShape, *, projected: bool) -> None:
        """``projected``: whole, for readers of the Hudi format, whose timeline is some 700 bytes a file. Else only the
        newest commit is, from which writers conclude that those before it are, too.
        """
        self._handle = TableHandle(backend, CommitSettings(), LeaseSettings())
        self._projected = projected
        self.shape = shape
        self.files: list[DataFile] = []

    async def make(self) -> None:
        await self._handle.backend.put(PROPERTIES, _PROPERTIES.encode())
        for floor in floor_files(_PROPERTIES):
            await put_projected(self._handle, floor)
        for entry in self.shape.entries():
            await self._commit(entry, is_shown=self._projected)
        if not self._projected:
            await self._show_newest()

    async def append(self, count: int, random: Random) -> tuple[DataFile, ...]:
        """One more commit, of so many files for partitions that are there."""
        history = self._handle.log.history
        instant = instant_time(BEGAN, after=history.reached_instant)
        partitions = min(self.shape.files, self.shape.partitions)
        added = [data_file(random.randrange(partitions), instant, random.randrange(1000)) for _ in range(count)]
        await self._commit(commit(added, instant=instant, base=history.head), is_shown=True)
        return tuple(added)

    @property
    def head(self) -> tuple[int, str]:
        """The position of the newest entry, and the hash of the log up to there."""
        history = self._handle.log.history
        return history.head, history.hash_at(history.head)

    async def _commit(self, entry: LogEntry, *, is_shown: bool) -> None:
        position = await self._handle.log.win(entry, check=lambda history: None)
        if is_shown:
            await project(self._handle, _PROPERTIES, position)
        self.files += entry.added

    async def _show_newest(self) -> None:
        history = self._handle.log.history
        for file in projected_files(history.entry(history.head), _PROPERTIES, new_partitions=()):
            await put_projected(self._handle, file)


_COLUMNS: list[tuple[str, pa.DataType]] = [("value", pa.int64()), ("p", pa.string())]

SCHEMA = pa.schema(_COLUMNS)

_PROPERTIES = TableProperties(
    name="views",
    partition_by=("p",),
    schema=SCHEMA,
    created=instant_time(BEGAN),
)


def touch(folder: Path, files: Sequence[DataFile]) -> None:
    """Create empty files of those names, for the sides that list them."""
    for partition in {file.partition for file in files}:
        (folder / partition).mkdir(parents=True, exist_ok=True)
    for file in files:
        (folder / file.path).touch()
