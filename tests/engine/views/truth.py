"""What a table holds at each position of its log, told by its bare objects: nothing here reads through the library.

``by_the_log`` replays the entries. ``by_listing`` goes by the data files that are there: which entry has committed it,
which has replaced it, and how many rows and bytes it has in fact.
"""

import io
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow.parquet as pq

from tallymark.engine.inspection.table_view import TableView
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.views.view import ViewAt
from tests.table_invariants import Storage, data_files, file_path, keeps_replaced_files, log_entries

Files = frozenset[DataFile]


@dataclass(frozen=True, slots=True)
class Life:
    """From which position on a file is live, and at which it was replaced; None: it was not."""

    file: DataFile
    added_at: int
    removed_at: int | None

    def holds(self, position: int) -> bool:
        return self.added_at <= position and (self.removed_at is None or position < self.removed_at)


class Truth:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._entries = list(enumerate(log_entries(storage), start=1))
        self.head = len(self._entries)
        self._by_the_log: dict[int, Files] = {}

    def by_the_log(self, position: int) -> Files:
        """What the entries say."""
        if position not in self._by_the_log:
            held = frozenset(life.file for life in self.lives.values() if life.holds(position))
            self._by_the_log[position] = held
        return self._by_the_log[position]

    def by_listing(self, position: int) -> Files:
        """The files that lie there and are live, each as it is and not as it was told to be."""
        there = self.lives.keys() & data_files(self._storage)
        return frozenset(self._as_found(path) for path in there if self.lives[path].holds(position))

    @property
    def complete_since(self) -> int:
        """The first position from which on every file of every position lies there."""
        gone = [life for path, life in self.lives.items() if path not in self._storage]
        assert all(life.removed_at for life in gone), f"committed and gone: {gone}"
        return max((life.removed_at or 0 for life in gone), default=0)

    @property
    def horizon(self) -> int:
        """Up to where a clean may have deleted what was replaced."""
        return max((entry["horizon"] for _, entry in self._counting() if entry["kind"] == "clean"), default=0)

    def replaced_until(self, horizon: int) -> int:
        """Where files are gone that were replaced up to a horizon: every position from this one on has all of its."""
        removals = (position for position, entry in self._counting() if entry["kind"] == "commit" and entry["removed"])
        return max((position for position in removals if position <= horizon), default=0)

    @property
    def keeps_replaced_files(self) -> bool:
        return keeps_replaced_files(self._storage)

    @property
    def occurred(self) -> frozenset[str]:
        """What the table has been through, as far as this judge can tell."""
        counting = dict(self._counting())
        found = {f"{entry['operation']} in the log" for entry in counting.values()}
        fills = [entry for entry in counting.values() if entry["operation"] == "append" and entry["removed"]]
        found |= {"fill in the log"} if fills else set()
        found |= {"void entry in the log"} if len(counting) < self.head else set()
        strays = data_files(self._storage) - self.lives.keys()
        found |= {"files that no entry names"} if strays else set()
        return frozenset(found)

    @cached_property
    def lives(self) -> Mapping[str, Life]:
        """Of every file that was ever committed, by path."""
        found: dict[str, Life] = {}
        for position, entry in self._counting():
            if entry["kind"] == "commit":
                for file in entry["removed"]:
                    found[file_path(file)] = replace(found[file_path(file)], removed_at=position)
                found |= {file_path(file): Life(DataFile(*file), position, None) for file in entry["added"]}
        return found

    def _counting(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """An instant's first entry counts."""
        decided: set[str] = set()
        for position, entry in self._entries:
            if entry["instant"] not in decided:
                decided.add(entry["instant"])
                yield position, entry

    def _as_found(self, path: str) -> DataFile:
        data = self._storage[path]
        return replace(self.lives[path].file, rows=pq.read_metadata(io.BytesIO(data)).num_rows, bytes=len(data))


async def answers_are_the_truth(view: TableView, truth: Truth) -> None:
    """At every position that the view answers: by the log, and by listing as far as nothing was deleted since."""
    complete_since, reading = truth.complete_since, view.statistics()
    for position in range(reading.floor, reading.head + 1):
        at = view.at(position)
        await never_another_positions_answer(at, truth.by_the_log(position))
        if position >= complete_since:
            await serves_just_what_is_there(at, truth.by_listing(position))
        for since in range(reading.floor, position):
            await tells_what_came_and_went(at, since, truth)


async def never_another_positions_answer(at: ViewAt, held: Files) -> None:
    """Each query, of each partition that there is, and of one that is not."""
    assert tuple([file async for file in at.all_files()]) == tuple(_by_path(held))
    assert await at.partitions() == tuple(sorted({file.partition for file in held}))
    for partition in {file.partition for file in held} | {"month=99"}:
        here = [file for file in _by_path(held) if file.partition == partition]
        assert await at.files(partition) == tuple(here)
        assert await at.file(partition, "no-such-file") is None
        for file in here:
            assert await at.file(partition, file.file_id) == file
            small = tuple(each for each in here if each.bytes < file.bytes)
            assert await at.small_files(partition, below=file.bytes) == small


async def serves_just_what_is_there(at: ViewAt, there: Files) -> None:
    """No deleted file is served, and no committed one is missed."""
    served = {file async for file in at.all_files()}
    assert not served - there, f"served, and not there: {sorted(map(str, served - there))}"
    assert not there - served, f"committed, and not served: {sorted(map(str, there - served))}"


async def tells_what_came_and_went(at: ViewAt, since: int, truth: Truth) -> None:
    before, now = truth.by_the_log(since), frozenset([file async for file in at.all_files()])
    assert await at.added_since(since) == tuple(_by_path(now - before))
    assert await at.removed_since(since) == tuple(_by_path(before - now))


def answers_every_retained_position(view: TableView, truth: Truth, *, keep_positions: int) -> None:
    """Of a view that has read the whole log: from what a clean has let go up to the head, and nothing below.

    Of a table that keeps nothing, as many positions as it was told to keep.
    """
    horizon, reading = truth.horizon if truth.keeps_replaced_files else truth.head - keep_positions, view.statistics()
    assert reading.head == truth.head
    assert reading.floor == truth.replaced_until(horizon)
    if truth.keeps_replaced_files:
        assert reading.floor >= truth.complete_since, "it answers for a position whose files are gone"


def _by_path(files: Collection[DataFile]) -> list[DataFile]:
    return sorted(files, key=lambda file: file.path)
