"""A view of a log up to a position, made without a listing."""

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import CorruptObject
from tallymark.engine.timeline.entry import LogEntry
from tallymark.engine.timeline.log import LOG_FOLDER
from tallymark.engine.views.memory_store import MemoryStore
from tallymark.engine.views.view import View
from tallymark.engine.views.view_until import view_until
from tests.engine.timeline.entries import commit, data_file, history_of
from tests.engine.views.checkpointing import Process, parts_of, put_entries, stored
from tests.engine.views.histories import PARTITIONS, log_entries
from tests.support.examples import examples
from tests.support.faulty import FaultyBackend
from tests.support.loops import on_both_loops


def made(storage, entries: tuple[LogEntry, ...], position: int):
    return view_until(storage, position, history_of(entries).hash_at(position), MemoryStore(), table="")


async def answers(view: View, position: int) -> dict[str, object]:
    return {partition: await view.at(position).files(partition) for partition in PARTITIONS}


@settings(max_examples=examples(60))
@given(entries=log_entries(), data=st.data())
def test_at_every_position_it_answers_as_the_log_does_whatever_checkpoints_there_are(entries, data):
    """Of before that position, and of after it."""
    storage = MemoryBackend()
    left = data.draw(st.sets(st.integers(1, max(len(entries), 1)), max_size=3))

    async def check() -> None:
        process = Process(storage)
        for number, entry in enumerate(entries, 1):
            await put_entries(storage, [entry], after=number - 1)
            if number in left:
                await process.checkpoint()
        for position in range(len(entries) + 1):
            backend = FaultyBackend(storage)
            view = await made(backend, entries, position)
            truth = history_of(entries).files_at(position)
            assert await answers(view, position) == {
                partition: tuple(file for file in truth if file.partition == partition) for partition in PARTITIONS
            }
            assert {call.verb for call in backend.calls} <= {"get"}

    with parts_of(150):
        trio.run(check)


ENTRIES = tuple(commit(number, added=(data_file(f"month={number % 3 + 1}", number),)) for number in range(1, 21))


async def table(*, checkpoint_at: int) -> MemoryBackend:
    storage = MemoryBackend()
    await put_entries(storage, ENTRIES[:checkpoint_at])
    await Process(storage).checkpoint()
    await put_entries(storage, ENTRIES[checkpoint_at:], after=checkpoint_at)
    return storage


@on_both_loops
async def test_from_a_checkpoint_the_entries_after_it_are_read_and_the_part_that_is_asked_for():
    with parts_of(1):
        backend = FaultyBackend(await table(checkpoint_at=18))
    view = await made(backend, ENTRIES, 20)
    assert len(await view.at(20).files("month=1")) == 6
    read = [path.removeprefix(".hoodie/.tallymark/").partition("/")[0] for path in backend.paths("get")]
    assert sorted(read) == ["checkpoint"] * 3 + ["log"] * 2


@on_both_loops
async def test_a_checkpoint_of_a_later_position_serves_where_the_log_leads_from_the_position_to_it():
    """The entries before the position may be archived."""
    storage = await table(checkpoint_at=18)
    await storage.delete([f"{LOG_FOLDER}/{number:020d}" for number in range(1, 16)])
    view = await made(storage, ENTRIES, 17)
    assert len(await view.at(17).files("month=1")) == 5
    await storage.delete([f"{LOG_FOLDER}/{18:020d}"])
    with pytest.raises(CorruptObject):
        await made(storage, ENTRIES, 17)


@on_both_loops
async def test_a_checkpoint_of_another_log_is_refused_and_the_log_read_whole():
    storage = await table(checkpoint_at=18)
    entries, other = (commit(1, nonce="another"), *ENTRIES[1:]), MemoryBackend()
    await put_entries(other, entries)
    for path, data in stored(storage).items():
        await other.put(path, data)
    assert len(await (await made(other, entries, 20)).at(20).files("month=2")) == 6


@on_both_loops
async def test_a_log_that_lacks_an_entry_is_told_and_never_answered_for():
    storage = await table(checkpoint_at=10)
    await storage.delete([f"{LOG_FOLDER}/{15:020d}"])
    with pytest.raises(CorruptObject, match="entry 15 of"):
        await made(storage, ENTRIES, 20)
