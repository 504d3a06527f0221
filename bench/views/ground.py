"""One table, in all the forms that the sides need, and what is asked of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from random import Random

from tallymark.backends import open_backend
from tallymark.bench.load import Load
from tallymark.bench.made_table import MadeTable, TableShape, touch
from tallymark.bench.peers.delta_log import append_delta_commit, has_delta, write_delta_log
from tallymark.bench.views.lookup import Lookup, lookups
from tallymark.engine.table import open_table

FILES_ON_DISK_MAX = 100_000
"""Empty files of a larger table are not made: a million take minutes to make and to remove, and a gigabyte of inodes.
What lists a partition takes as long as the partition is large, whatever else there is."""

FOLLOWED = (1, 100, 1000)
"""Files of the commits that are followed."""

FOLLOWED_TIMES = 11
"""Commits of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured."""

    rate: float = 2000.0
    """Lookups per second of many callers."""
    connections: int = 32
    processes: int = 4
    seconds: float = 20.0
    warm_up_s: float = 5.0
    alone_s: float = 3.0
    """Of one caller that sends one lookup after the other."""
    followed: tuple[int, ...] = FOLLOWED
    followed_times: int = FOLLOWED_TIMES

    def many(self) -> Load:
        return Load(
            connections=self.connections,
            processes=self.processes,
            rate=self.rate,
            seconds=self.seconds,
            warm_up_s=self.warm_up_s,
        )

    def alone(self) -> Load:
        return Load(connections=1, processes=1, seconds=self.alone_s, warm_up_s=self.alone_s / 10)


class Ground:
    """Below a folder that goes at the end. Belongs to one event loop."""

    def __init__(self, folder: Path, shape: TableShape, effort: Effort) -> None:
        self.folder = folder
        self.shape = shape
        self.effort = effort
        self.has_files = shape.files <= FILES_ON_DISK_MAX
        """Whether the names of data files have empty files behind them, and a Hudi timeline before them."""
        self.lookups: tuple[Lookup, ...] = ()
        self._random = Random(0)  # noqa: S311 no secret
        self._made = MadeTable(open_backend(self.table), shape, projected=self.has_files)

    @property
    def table(self) -> Path:
        return self.folder / "table"

    @property
    def delta(self) -> Path:
        """The same files, by a Delta log."""
        return self.folder / "delta"

    @property
    def bare(self) -> Path:
        """The table's bookkeeping without its checkpoint."""
        return self.folder / "bare"

    @property
    def wanted(self) -> Path:
        """A file with the lookups, for the load generator."""
        return self.folder / "lookups.json"

    @property
    def names(self) -> Path:
        """A file with the paths of all data files, one a line."""
        return self.folder / "names"

    async def make(self) -> None:
        self.table.mkdir(parents=True)
        await self._made.make()
        self._link_bare()
        await open_table(self.table).checkpoint()
        files = self._made.files
        self.lookups = lookups(files, self._random)
        self.wanted.write_text(dumps([each.fields() for each in self.lookups]))
        self.names.write_text("".join(f"{file.path}\n" for file in files))
        if self.has_files:
            touch(self.table, files)
        if has_delta():
            each = -(-len(files) // self.shape.commits)
            commits = (files[at : at + each] for at in range(0, len(files), each))
            write_delta_log(self.delta, commits, partition_column="p")

    def _link_bare(self) -> None:
        for path in bookkeeping(self.table):
            link = self.bare / path.relative_to(self.table)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.hardlink_to(path)

    @property
    def head(self) -> tuple[int, str]:
        return self._made.head

    async def append(self, count: int) -> Lookup:
        """One more commit, of so many files; returns for what to ask to see it."""
        added = await self._made.append(count, self._random)
        if self.has_files:
            touch(self.table, added)
        if has_delta():
            append_delta_commit(self.delta, added)
        partition = added[0].partition
        held = sum(file.partition == partition for file in self._made.files)
        return Lookup(partition, None, held)


def bookkeeping(table: Path) -> Iterator[Path]:
    """Everything by which our view knows the table's files."""
    yield table / ".hoodie/hoodie.properties"
    yield from filter(Path.is_file, (table / ".hoodie/.tallymark").rglob("*"))
