"""Comparison of the answers of a view, however it is stored and queried, with the truth at every position."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Protocol

from tallymark.backends import Backend
from tallymark.engine.inspection.table_view import TableView
from tallymark.engine.settings import ViewSettings
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.views.view import ViewAt
from tests.engine.jobs.scene import table
from tests.engine.views.truth import Files, Truth


class Answers(Protocol):
    """``ViewAt`` is one."""

    async def files(self, partition: str) -> tuple[DataFile, ...]: ...
    async def file(self, partition: str, file_id: str) -> DataFile | None: ...
    async def small_files(self, partition: str, *, below: int) -> tuple[DataFile, ...]: ...
    async def partitions(self) -> tuple[str, ...]: ...
    def all_files(self) -> AsyncIterator[DataFile]: ...
    async def added_since(self, position: int) -> tuple[DataFile, ...]: ...
    async def removed_since(self, position: int) -> tuple[DataFile, ...]: ...


class Positions(Protocol):
    """``View`` is one."""

    @property
    def floor(self) -> int: ...
    @property
    def head(self) -> int: ...
    def at(self, position: int) -> Answers: ...


async def answers_are_the_truth(view: Positions, truth: Truth) -> None:
    """At every position that the view answers: by the log, and by listing as far as nothing was deleted since."""
    complete_since = truth.complete_since
    for position in range(view.floor, view.head + 1):
        at = view.at(position)
        await never_another_positions_answer(at, truth.by_the_log(position))
        if position >= complete_since:
            await never_serves_a_deleted_file(at, truth.by_listing(position))
            await never_misses_a_committed_file(at, truth.by_listing(position))
        for since in range(view.floor, position):
            await tells_what_came_and_went(at, since, truth)


async def never_another_positions_answer(at: Answers, held: Files) -> None:
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


async def never_serves_a_deleted_file(at: Answers, there: Files) -> None:
    served = {file async for file in at.all_files()}
    assert not served - there, f"served, and not there: {sorted(map(str, served - there))}"


async def never_misses_a_committed_file(at: Answers, there: Files) -> None:
    served = {file async for file in at.all_files()}
    assert not there - served, f"committed, and not served: {sorted(map(str, there - served))}"


async def tells_what_came_and_went(at: Answers, since: int, truth: Truth) -> None:
    before, now = truth.by_the_log(since), frozenset([file async for file in at.all_files()])
    assert await at.added_since(since) == tuple(_by_path(now - before))
    assert await at.removed_since(since) == tuple(_by_path(before - now))


def answers_every_retained_position(view: Positions, truth: Truth, *, keep_positions: int) -> None:
    """Of a view that has read the whole log: from what a clean has let go up to the head, and nothing below.

    Of a table that keeps nothing, as many positions as it was told to keep.
    """
    horizon = truth.horizon if truth.keeps_replaced_files else truth.head - keep_positions
    assert view.head == truth.head
    assert view.floor == truth.replaced_until(horizon)
    if truth.keeps_replaced_files:
        assert view.floor >= truth.complete_since, "it answers for a position whose files are gone"


def _by_path(files: Collection[DataFile]) -> list[DataFile]:
    return sorted(files, key=lambda file: file.path)


class Keeper:
    """By the public API, in one process; reads the log when it is told to."""

    def __init__(self, view: TableView) -> None:
        self._view = view

    @classmethod
    @asynccontextmanager
    async def of(cls, backend: Backend, views: ViewSettings) -> AsyncIterator["Keeper"]:
        """One who has read the log."""
        async with table(backend, views=views).view() as view:
            yield cls(view)

    async def follow(self) -> None:
        await self._view.sync()

    @property
    def floor(self) -> int:
        return self._view.statistics().floor

    @property
    def head(self) -> int:
        return self._view.statistics().head

    def at(self, position: int) -> ViewAt:
        return self._view.at(position)
