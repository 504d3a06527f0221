"""The measuring wrapper: what it counts."""

import anyio
import pytest

from tallymark.backends import AlreadyExists, NotFound, Throttled, Unavailable
from tallymark.backends.local import LocalBackend
from tallymark.backends.measured import MeasuredBackend
from tallymark.backends.memory import MemoryBackend
from tallymark.backends.meter import RequestMeter
from tallymark.backends.testing import listed
from tests.support.faulty import FaultyBackend, Verb, hanging, lost_answer, refused, slow
from tests.support.loops import on_both_loops, on_virtual_time


def measured(*script):
    return MeasuredBackend(FaultyBackend(MemoryBackend(), *script), RequestMeter())


@on_virtual_time
async def test_each_verb_is_counted_with_its_bytes_and_its_time():
    seconds: dict[Verb, float] = {"put": 0.5, "list": 2.0, "get": 0.25, "get_range": 0.125, "delete": 4.0}
    backend = measured(*(slow(verb, each) for verb, each in seconds.items()))
    await backend.put("a", b"123")
    await backend.put_new("b", b"12345")
    await backend.get("a")
    await backend.get_range("a", 1, 9)
    await listed(backend)
    await backend.delete(["a", "b"])
    found = backend.statistics()
    assert [each.request_class for each in found.classes] == list(seconds)
    assert found.of("put").outcomes == {"ok": 2}
    assert (found.of("put").sent_bytes, found.of("get").received_bytes) == (8, 3)
    assert found.of("get_range").received_bytes == 2
    assert {each.request_class: each.max_s for each in found.classes} == seconds


@on_virtual_time
async def test_each_outcome_is_counted_as_what_it_is():
    backend = measured(lost_answer("put"), refused("delete"), refused("list", error=Throttled("slow down")))
    await backend.put_new("a", b"")
    for error, ask in (
        (AlreadyExists, lambda: backend.put_new("a", b"")),
        (NotFound, lambda: backend.get("b")),
        (Unavailable, lambda: backend.put("c", b"")),
        (PermissionError, lambda: backend.delete(["a"])),
        (Throttled, lambda: listed(backend)),
    ):
        with pytest.raises(error):
            await ask()
    found = backend.statistics()
    assert {each.request_class: each.outcomes for each in found.classes} == {
        "put": {"ok": 1, "exists": 1, "unknown": 1},
        "list": {"throttled": 1},
        "get": {"not_found": 1},
        "delete": {"refused": 1},
    }


@on_virtual_time
async def test_a_call_that_nobody_waits_for_any_more_has_an_unknown_outcome():
    backend = measured(hanging("get"))
    with anyio.move_on_after(3.0):
        await backend.get("a")
    assert backend.statistics().of("get").outcomes == {"unknown": 1}
    assert backend.statistics().of("get").max_s == 3.0


@on_virtual_time
async def test_the_time_of_a_listing_is_not_that_of_its_reader():
    backend = measured(slow("list", 1.0))
    await backend.put("a", b"")
    await backend.put("b", b"")
    async for _ in backend.list(""):
        await anyio.sleep(100)
    assert backend.statistics().of("list").outcomes == {"ok": 1}
    assert backend.statistics().of("list").max_s == 1.0


@on_virtual_time
async def test_a_listing_that_is_not_read_to_its_end_is_counted_too():
    backend = measured()
    await backend.put("a", b"")
    await backend.put("b", b"")
    entries = backend.list("")
    assert (await anext(entries)).path == "a"
    await entries.aclose()
    assert backend.statistics().of("list").outcomes == {"ok": 1}


@on_virtual_time
async def test_a_published_file_is_a_put_of_its_bytes_and_staging_is_billed_by_nobody():
    backend = measured(lost_answer("publish", nth=1))
    await backend.open_staging("s")
    file = backend.new_file("a", staging="s")
    file.sink.write(b"rows")
    with pytest.raises(Unavailable):
        file.publish()
    other = file.again("b")
    other.publish()
    await backend.close_staging("s")
    found = backend.statistics()
    assert found.of("put").outcomes == {"unknown": 1, "ok": 1}
    assert found.of("put").sent_bytes == 8
    assert found.of("stage").count == 3


@on_both_loops
async def test_a_local_file_is_counted_with_its_bytes(tmp_path):
    backend = MeasuredBackend(LocalBackend(tmp_path / "t"), RequestMeter())
    await backend.open_staging("s")
    file = backend.new_file("a", staging="s")
    file.sink.write(b"rows")
    file.publish()
    assert backend.statistics().of("put").sent_bytes == 4
    assert backend.statistics().of("put").max_s > 0


@on_virtual_time
async def test_it_looks_like_what_it_wraps():
    backend = measured()
    assert (backend.url, backend.has_staging) == ("memory:", False)
    assert repr(MeasuredBackend(MemoryBackend(), RequestMeter())) == "<MemoryBackend 0 objects>"
