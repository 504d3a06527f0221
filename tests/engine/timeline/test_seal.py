"""Whether an instant still takes direct markers."""

import pytest

from tallymark.backends.errors import Unavailable
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import Sealed
from tallymark.engine.timeline.seal import check_unsealed, seal_path
from tests.engine.timeline.entries import commit, instant, rollback, win
from tests.support.faulty import FaultyBackend, lost_request
from tests.support.loops import on_both_loops


@on_both_loops
async def test_an_instant_without_seal_or_entry_is_open():
    storage = MemoryBackend()
    await win(storage, commit(1), rollback(2))
    await check_unsealed(storage, instant(3), base=0)


@on_both_loops
async def test_a_sealed_instant_is_closed():
    storage = MemoryBackend()
    await storage.put(seal_path(instant(3)), b"")
    with pytest.raises(Sealed, match="is being committed or rolled back"):
        await check_unsealed(storage, instant(3), base=0)
    await check_unsealed(storage, instant(4), base=0)


@pytest.mark.parametrize("entry", [commit(3), rollback(3)], ids=lambda entry: entry.kind)
@on_both_loops
async def test_an_instant_that_the_log_has_ended_is_closed_though_its_seal_has_gone(entry):
    storage = MemoryBackend()
    await win(storage, commit(1), commit(2), entry, commit(4))
    with pytest.raises(Sealed, match=f"its {entry.kind} stands at position 3"):
        await check_unsealed(storage, instant(3), base=1)


@on_both_loops
async def test_the_seal_is_looked_for_before_the_log():
    """A seal goes only after the entry has come: in the other order both could be missed."""
    storage = FaultyBackend(MemoryBackend())
    await check_unsealed(storage, instant(3), base=0)
    assert storage.paths("get") == [seal_path(instant(3)), ".hoodie/.tallymark/log/00000000000000000001"]


@on_both_loops
async def test_silence_is_no_permission():
    storage = FaultyBackend(MemoryBackend(), lost_request("get", "*/log/*"))
    with pytest.raises(Unavailable):
        await check_unsealed(storage, instant(3), base=0)
