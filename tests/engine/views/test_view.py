"""A view against the log that it follows, also while rows are read from a base and the log grows."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.engine.errors import Closed, CorruptObject, InvalidRequest
from tallymark.engine.timeline.entry import DataFile, LogEntry
from tallymark.engine.timeline.history import History
from tallymark.engine.views.base import PartitionState
from tallymark.engine.views.block import pack_rows
from tallymark.engine.views.memory_store import MemoryStore
from tallymark.engine.views.row import FileRow
from tallymark.engine.views.store import DamagedStore
from tallymark.engine.views.view import View, ViewAt, live_files
from tests.engine.timeline.entries import clean, commit, data_file, history_of, partitions, rollback
from tests.engine.views.histories import FIRST, PARTITIONS, SECOND, THREE, log_entries
from tests.support.examples import examples
from tests.support.loops import on_both_loops, on_virtual_time

BYTES = FIRST.bytes
"""Of every file."""


def view_of(entries: tuple[LogEntry, ...], **made_with) -> View:
    view = View(**made_with)
    view.sync(history_of(entries))
    return view


async def check_answers_as_the_log_does(view: View, history: History) -> None:
    """Of every position that the view answers."""
    for position in range(view.floor, history.head + 1):
        at, truth = view.at(position), history.files_at(position)
        check_what_is_at_hand(at, truth)
        assert tuple([file async for file in at.all_files()]) == truth
        check_what_is_at_hand(at, truth)
        assert await at.partitions() == tuple(sorted({file.partition for file in truth}))
        for partition in PARTITIONS:
            wanted = tuple(file for file in truth if file.partition == partition)
            assert await at.files(partition) == await at.small_files(partition, below=BYTES + 1) == wanted
            assert await at.small_files(partition, below=BYTES) == ()
        for since in range(view.floor, position):
            before = history.files_at(since)
            for file in {*before, *truth}:
                assert await at.file(file.partition, file.file_id) == (file if file in truth else None)
            assert await at.added_since(since) == tuple(file for file in truth if file not in before)
            assert await at.removed_since(since) == tuple(file for file in before if file not in truth)


def check_what_is_at_hand(at: ViewAt, truth: Sequence[DataFile]) -> None:
    for partition in PARTITIONS:
        block = at.cached_block(partition)
        if block is not None:
            wanted = tuple(file for file in truth if file.partition == partition)
            assert live_files(block, partition, at.position) == wanted


class ForgetfulStore(MemoryStore):
    """A ``MemoryStore`` that finds itself damaged when it is told to."""

    def __init__(self, damaged: Callable[[], str]) -> None:
        super().__init__()
        self._damaged = damaged

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return partial(self._call, found) if name in ("rows", "load", "add", "remove", "purge") else found

    def _call(self, verb: Callable[..., object], partition: str, *arguments: object) -> object:
        if whole := self._damaged():
            self.forget(None if whole == "all" else [partition])
            raise DamagedStore("told to", partitions=None if whole == "all" else frozenset({partition}))
        return verb(partition, *arguments)


@settings(max_examples=examples(60))
@given(entries=log_entries(), data=st.data())
def test_what_a_store_loses_is_read_again_and_the_answers_stay(entries, data):
    history = History()
    left = iter(data.draw(st.lists(st.sampled_from(("", "", "one", "all")), max_size=40)))
    view = View(ForgetfulStore(lambda: next(left, "")))
    for entry in entries:
        history.apply(entry)
        view.sync(history)
    trio.run(check_answers_as_the_log_does, view, history)


@on_both_loops
async def test_a_position_beyond_the_head_or_let_go_by_a_clean_even_meanwhile_is_refused_and_the_rest_is_answered():
    view = view_of(THREE)
    with pytest.raises(InvalidRequest, match="position 4: this view answers for 0 to 3"):
        view.at(4)
    before = view.at(1)
    view.sync(history_of((*THREE, clean(4, horizon=2))))
    assert view.floor == 2
    assert await view.at(2).files("month=1") == (SECOND,)
    assert await view.at(4).removed_since(2) == ()
    with pytest.raises(InvalidRequest, match="position 1"):
        view.at(1)
    with pytest.raises(InvalidRequest, match="position 1"):
        await before.files("month=1")


def test_as_many_positions_are_kept_as_the_view_is_told():
    entries = (*THREE, *(rollback(number) for number in range(4, 10)))
    assert view_of(entries, keep_positions=8).floor == 0
    assert view_of(entries, keep_positions=7).floor == 2


def test_a_sync_touches_the_partitions_of_the_new_entries_only():
    touched: list[str] = []

    class Watched(MemoryStore):
        def add(self, partition: str, block: bytes) -> None:
            touched.append(partition)
            super().add(partition, block)

    entries = tuple(commit(number, added=(data_file(f"month={number}", number),)) for number in range(1, 100))
    history = history_of(entries)
    view = View(Watched())
    view.sync(history)
    history.apply(commit(100, added=(data_file("month=7", 100),)))
    view.sync(history)
    assert touched == ["month=7"]
    assert view.statistics().entries == 100


def test_a_reading_tells_what_the_view_holds():
    reading = view_of(THREE).statistics()
    assert (reading.head, reading.floor, reading.partitions, reading.entries) == (3, 0, 2, 3)
    assert reading.store.memory_bytes == 3 * (42 + len(FIRST.name))
    assert (reading.loaded, reading.rebuilt) == (0, 0)


NEXT = data_file("month=1", 3)
REPLACED = (*THREE[:2], commit(3, scope=partitions("month=1"), added=(NEXT,), removed=(SECOND,)))


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


async def asked_before(change: Callable[[], None], ask: Callable[[], Awaitable[object]]) -> object:
    """What is answered if that happens half a second after it was asked for."""
    answers: list[object] = []

    async def answer() -> None:
        answers.append(await ask())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        await trio.sleep(0.5)
        change()
    return answers[0]


@on_virtual_time
async def test_what_is_committed_while_a_partition_is_read_is_not_missed_nor_seen_too_early():
    view = View(base=SlowBase(*REPLACED[:1]))
    before = view.at(1)
    assert await asked_before(lambda: view.sync(history_of(REPLACED)), lambda: before.files("month=1")) == (FIRST,)
    assert [await view.at(position).files("month=1") for position in (2, 3)] == [(SECOND,), (NEXT,)]


@on_virtual_time
async def test_a_block_of_an_earlier_base_is_not_taken_for_one_of_a_later():
    """What came between the two is kept for nobody, so nothing would be put on top of the earlier one."""
    view = View(base=SlowBase(*REPLACED[:1]))
    view.sync(history_of(REPLACED))
    later = SlowBase(*REPLACED[:2])
    assert await asked_before(lambda: view.rebase(later), lambda: view.at(3).files("month=1")) == (NEXT,)
    assert await view.at(2).files("month=1") == (SECOND,)


@on_virtual_time
async def test_removed_files_are_told_whole_or_refused_when_the_floor_rises_meanwhile():
    view = View(base=SlowBase(*REPLACED[:1]), keep_positions=2)
    view.sync(history_of(REPLACED[:2]))

    async def ask() -> None:
        with pytest.raises(InvalidRequest, match="position 1:"):
            await view.at(2).removed_since(1)

    await asked_before(lambda: view.sync(history_of((*REPLACED, commit(4)))), ask)
    assert view.floor == 2


@on_virtual_time
async def test_a_closed_view_answers_nothing_also_while_it_reads():
    """What it has released would be missing from its answers, as if there were no such files."""
    store = MemoryStore()
    view = View(store, base=SlowBase(*REPLACED[:1]))
    view.sync(history_of(REPLACED))

    async def query() -> None:
        with pytest.raises(Closed):
            await view.at(3).files("month=1")

    await asked_before(view.close, query)
    assert not store.partitions()
    await query()
    with pytest.raises(Closed):
        view.at(3).cached_block("month=1")


@on_virtual_time
async def test_a_block_that_lacks_what_a_later_entry_removes_is_of_another_log():
    view = View(base=SlowBase(*REPLACED[:1], lacks=(FIRST.name,)))
    view.sync(history_of(REPLACED))
    with pytest.raises(CorruptObject, match=r"'month=1' held at position 1 lacks .*, which position 2 removes"):
        await view.at(3).files("month=1")


@on_virtual_time
async def test_rows_that_went_below_the_floor_before_a_partition_was_read_are_not_kept():
    view = View(base=SlowBase(*REPLACED[:1]), keep_positions=0)
    view.sync(history_of(REPLACED))
    await view.at(3).files("month=1")
    assert view.statistics().store.memory_bytes == len(pack_rows([FileRow(NEXT, 3)]))
