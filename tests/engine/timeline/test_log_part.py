"""The log up to a position that is known to exist."""

import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import CorruptObject
from tallymark.engine.timeline.log_part import read_until
from tests.engine.timeline.entries import commit, log, win
from tests.support.faulty import FaultyBackend
from tests.support.loops import on_both_loops


async def table(count: int) -> tuple[FaultyBackend, list[str]]:
    """Storage with so many entries, and the hash at each position."""
    storage = MemoryBackend()
    await win(storage, *(commit(number) for number in range(1, count + 1)))
    history = await log(storage).refresh()
    return FaultyBackend(storage), [history.hash_at(position) for position in range(count + 1)]


@on_both_loops
async def test_it_is_read_to_the_position_and_no_further_and_nothing_is_listed():
    backend, hashes = await table(40)
    assert (await read_until(backend, 35, hashes[35])).head == 35
    assert [call.verb for call in backend.calls] == ["get"] * 35


@on_both_loops
async def test_at_position_0_nothing_is_read():
    backend, hashes = await table(1)
    assert (await read_until(backend, 0, hashes[0])).head == 0
    assert backend.calls == []


@on_both_loops
async def test_an_entry_that_is_gone_is_told():
    backend, hashes = await table(5)
    paths = [entry.path async for entry in backend.list("")]
    await backend.delete([path for path in paths if path.endswith("3")])
    with pytest.raises(CorruptObject, match="entry 3 of"):
        await read_until(backend, 5, hashes[5])


@on_both_loops
async def test_another_log_is_told():
    backend, hashes = await table(5)
    with pytest.raises(CorruptObject, match="is not the log that the job began with"):
        await read_until(backend, 4, hashes[5])
