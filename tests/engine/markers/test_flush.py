"""One flush among silent and refusing stores."""

import pytest
import trio

from tallymark.backends.errors import NotPermitted
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import FlushFailed
from tallymark.engine.markers.flush import flush
from tallymark.engine.markers.statistics import MarkerCounts
from tallymark.engine.settings import MarkerSettings
from tests.support.faulty import FaultyBackend, hanging, lost_answer, lost_request, refused
from tests.support.loops import on_virtual_time

SETTINGS = MarkerSettings(flush_timeout_s=2.0, flush_attempt_count=3, flush_retry_pause_s=0.25)
PATH = ".hoodie/.temp/1/MARKERS0"


async def flushed(storage, data: bytes = b"a\n") -> int:
    """The number of puts that it took."""
    counts = MarkerCounts()
    await flush(storage, PATH, data, SETTINGS, counts)
    assert counts.put_bytes == len(data) * counts.puts
    return counts.puts


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        (lost_request("put_new", nth=1), 0.25),
        (lost_answer("put_new", nth=1), 0.25),
        (hanging("put_new", nth=1), 2.25),
        (hanging("put_new", nth=1, lands=True), 2.25),
    ],
    ids=["request lost", "answer lost", "timed out", "timed out after landing"],
)
@on_virtual_time
async def test_a_put_without_an_answer_is_repeated_with_the_same_bytes(fault, seconds):
    storage = FaultyBackend(MemoryBackend(), fault)
    assert await flushed(storage) == 2
    assert trio.current_time() == seconds
    assert storage.paths("put_new") == [PATH, PATH]
    assert await storage.get(PATH) == b"a\n"


@on_virtual_time
async def test_a_store_that_stays_silent_fails_the_flush_after_all_attempts():
    storage = FaultyBackend(MemoryBackend(), hanging("put_new"))
    with pytest.raises(FlushFailed, match=r"no answer to 3 attempts: none within 2.0 s"):
        await flushed(storage)
    assert trio.current_time() == 2.0 + 0.25 + 2.0 + 0.5 + 2.0
    assert len(storage.calls) == 3


@on_virtual_time
async def test_a_store_that_refuses_fails_the_flush_at_once():
    storage = FaultyBackend(MemoryBackend(), refused("put_new", error=NotPermitted("no rights")))
    with pytest.raises(FlushFailed, match="no rights"):
        await flushed(storage)
    assert len(storage.calls) == 1


@on_virtual_time
async def test_a_number_that_holds_other_bytes_is_never_taken_for_ours():
    storage = MemoryBackend()
    await storage.put(PATH, b"another's\n")
    with pytest.raises(FlushFailed, match="two servers use one number"):
        await flushed(storage)
    assert await storage.get(PATH) == b"another's\n"


@on_virtual_time
async def test_what_exists_and_cannot_be_read_back_is_asked_for_again():
    storage = FaultyBackend(MemoryBackend(), lost_answer("put_new", nth=1), lost_request("get", nth=1))
    assert await flushed(storage) == 3


@on_virtual_time
async def test_what_exists_and_may_not_be_read_back_fails_the_flush():
    storage = FaultyBackend(MemoryBackend(), lost_answer("put_new", nth=1), refused("get"))
    with pytest.raises(FlushFailed, match="refused"):
        await flushed(storage)
