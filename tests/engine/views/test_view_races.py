"""A view whose rows are read from a base while its log goes on."""

from collections.abc import Collection, Iterable, Mapping

import pytest
import trio

from tallymark.engine.errors import CorruptObject, InvalidRequest
from tallymark.engine.timeline.entry import LogEntry
from tallymark.engine.timeline.history import History
from tallymark.engine.views.base import PartitionState
from tallymark.engine.views.block import pack_rows
from tallymark.engine.views.row import FileRow
from tallymark.engine.views.view import View
from tests.engine.timeline.entries import commit, data_file, history_of, partitions
from tests.support.loops import on_virtual_time

FIRST, SECOND, THIRD = (data_file("month=1", number) for number in (1, 2, 3))
THREE = (
    commit(1, added=(FIRST,)),
    commit(2, scope=partitions("month=1"), added=(SECOND,), removed=(FIRST,)),
    commit(3, scope=partitions("month=1"), added=(THIRD,), removed=(SECOND,)),
)


class SlowBase:
    """What a log's first entries say, a second after it is asked for."""

    def __init__(self, *entries: LogEntry, lacks: tuple[str, ...] = ()) -> None:
        self._lacks = lacks
        self.position = len(entries)
        self.floor = 0
        rows = list(_rows(entries))
        live = sum(row.is_live(self.position) for row in rows)
        self.partitions = {"month=1": PartitionState(live, self.position)} if rows else {}
        self._block = pack_rows(row for row in rows if row.file.name not in lacks)
        self.reads = 0

    def leaders(self, partitions: Iterable[str]) -> Collection[str]:
        return tuple(partitions)

    async def blocks(self, partition: str) -> Mapping[str, bytes]:
        self.reads += 1
        await trio.sleep(1)
        return {partition: self._block}


def _rows(entries: tuple[LogEntry, ...]) -> list[FileRow]:
    removed = {file.name: at for at, entry in enumerate(entries, start=1) for file in entry.removed}
    return [
        FileRow(file, at, removed.get(file.name, 0))
        for at, entry in enumerate(entries, start=1)
        for file in entry.added
    ]


def history(*entries: LogEntry) -> History:
    return history_of(entries)


@on_virtual_time
async def test_what_is_committed_while_a_partition_is_read_is_not_missed_nor_seen_too_early():
    view = View(base=SlowBase(*THREE[:1]))
    before, asked = view.at(1), []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_files, before, asked)
        await trio.sleep(0.5)
        view.sync(history(*THREE))
    assert asked == [(FIRST,)]
    assert [await view.at(position).files("month=1") for position in (2, 3)] == [(SECOND,), (THIRD,)]


@on_virtual_time
async def test_a_block_of_an_earlier_base_is_not_taken_for_one_of_a_later():
    """What came between the two is kept for nobody, so nothing would be put on top of the earlier one."""
    view = View(base=SlowBase(*THREE[:1]))
    view.sync(history(*THREE))
    asked: list = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_files, view.at(3), asked)
        await trio.sleep(0.5)
        view.rebase(SlowBase(*THREE[:2]))
    assert asked == [(THIRD,)]
    assert await view.at(2).files("month=1") == (SECOND,)


@on_virtual_time
async def test_removed_files_are_told_whole_or_refused_when_the_floor_rises_meanwhile():
    view = View(base=SlowBase(*THREE[:1]), keep_positions=2)
    view.sync(history(*THREE[:2]))
    refused: list[str] = []

    async def ask() -> None:
        try:
            await view.at(2).removed_since(1)
        except InvalidRequest as error:
            refused.append(str(error))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.sleep(0.5)
        view.sync(history(*THREE, commit(4)))
    assert view.floor == 2
    assert [text.partition(":")[0] for text in refused] == ["position 1"]


@on_virtual_time
async def test_a_block_that_lacks_what_a_later_entry_removes_is_of_another_log():
    view = View(base=SlowBase(*THREE[:1], lacks=(FIRST.name,)))
    view.sync(history(*THREE))
    with pytest.raises(CorruptObject, match=r"'month=1' held at position 1 lacks .*, which position 2 removes"):
        await view.at(3).files("month=1")


@on_virtual_time
async def test_rows_that_went_below_the_floor_before_a_partition_was_read_are_not_kept():
    view = View(base=SlowBase(*THREE[:1]), keep_positions=0)
    view.sync(history(*THREE))
    await view.at(3).files("month=1")
    assert view.statistics().store.memory_bytes == len(pack_rows([FileRow(THIRD, 3)]))


async def _files(at, found: list) -> None:
    found.append(await at.files("month=1"))
