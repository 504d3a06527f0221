"""The faulty backend itself: tests stand on it, so it is tested."""

import anyio
import pytest
import trio

from tallymark.backends.errors import AlreadyExists, NotFound, NotPermitted, Unavailable
from tallymark.backends.memory import MemoryBackend
from tests.support.faulty import Call, FaultyBackend, hanging, lost_answer, lost_request, refused, slow
from tests.support.loops import on_virtual_time


@on_virtual_time
async def test_a_lost_request_does_nothing_and_a_lost_answer_does_everything():
    storage = FaultyBackend(MemoryBackend(), lost_request("put_new", "a"), lost_answer("put_new", "b"))
    for path in ("a", "b", "c"):
        if path == "c":
            await storage.put_new(path, b"1")
        else:
            with pytest.raises(Unavailable):
                await storage.put_new(path, b"1")
    assert [entry.path async for entry in storage.list("")] == ["b", "c"]


@on_virtual_time
async def test_a_lost_answer_hides_a_refusal_too():
    storage = FaultyBackend(MemoryBackend(), lost_answer("put_new", nth=2))
    await storage.put_new("a", b"1")
    with pytest.raises(Unavailable):
        await storage.put_new("a", b"2")
    with pytest.raises(AlreadyExists):
        await storage.put_new("a", b"2")


@on_virtual_time
async def test_only_the_nth_matching_call_meets_a_fault():
    storage = FaultyBackend(MemoryBackend(), refused("put", "m/*", nth=2))
    await storage.put("m/a", b"")
    await storage.put("n/a", b"")
    with pytest.raises(NotPermitted):
        await storage.put("m/b", b"")
    await storage.put("m/b", b"")
    assert storage.paths("put") == ["m/a", "n/a", "m/b", "m/b"]


@on_virtual_time
async def test_delays_add_up_on_the_virtual_clock_and_calls_are_recorded_with_their_time():
    begun = trio.current_time()
    storage = FaultyBackend(MemoryBackend(), slow("put", 0.03), slow("put", 0.5, nth=2, after_s=0.25))
    await storage.put("a", b"1")
    await storage.put("a", b"2")
    assert trio.current_time() - begun == pytest.approx(0.03 + 0.03 + 0.5 + 0.25)
    assert storage.calls == [Call("put", ("a",), begun), Call("put", ("a",), begun + 0.03)]


@pytest.mark.parametrize("lands", [False, True])
@on_virtual_time
async def test_a_hanging_call_never_answers_whether_or_not_it_landed(lands):
    storage = FaultyBackend(MemoryBackend(), hanging("put_new", lands=lands, nth=1))
    with anyio.move_on_after(3600) as bound:
        await storage.put_new("a", b"1")
    assert bound.cancelled_caught
    assert [entry.path async for entry in storage.list("")] == (["a"] if lands else [])


@pytest.mark.parametrize("lands", [False, True])
@on_virtual_time
async def test_publishing_a_data_file_meets_faults_too(lands):
    fault = lost_answer("publish") if lands else lost_request("publish")
    storage = FaultyBackend(MemoryBackend(), fault)
    file = storage.new_file("p/a.parquet", staging="s")
    file.sink.write(b"rows")
    with pytest.raises(Unavailable):
        file.publish()
    storage.heal()
    if lands:
        assert await storage.get("p/a.parquet") == b"rows"
    else:
        with pytest.raises(NotFound):
            await storage.get("p/a.parquet")
