"""The retrying wrapper: what it asks for again, and what it does not."""

from collections import Counter

import anyio
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.backends import AlreadyExists, NotFound, NotPermitted, Unavailable
from tallymark.backends.measured import MeasuredBackend
from tallymark.backends.memory import MemoryBackend
from tallymark.backends.meter import RequestMeter
from tallymark.backends.retry import Retries, RetrySettings
from tallymark.backends.retrying import PAGE_COUNT, RetryingBackend
from tallymark.backends.testing import listed
from tests.support.examples import examples
from tests.support.faulty import FaultyBackend, Verb, hanging, lost_answer, lost_request, refused
from tests.support.loops import on_virtual_time


def retrying(*script, settings=None):
    storage = FaultyBackend(MemoryBackend(), *script)
    return RetryingBackend(storage, Retries(settings)), storage


@on_virtual_time
async def test_gets_puts_and_deletes_whose_answers_are_lost_are_made_again():
    verbs: tuple[Verb, ...] = ("put", "get", "get_range", "folders", "delete")
    for fault in (lost_request, lost_answer):
        backend, storage = retrying(*(fault(verb, nth=1) for verb in verbs))
        await backend.put("a", b"1")
        assert await backend.get("a") == await backend.get_range("a", 0, 2) == b"1"
        assert await backend.folders("") == []
        await backend.delete(["a"])
        assert [call.verb for call in storage.calls] == [verb for verb in verbs for _ in range(2)]
        assert await listed(storage.inner) == []


@on_virtual_time
async def test_opening_and_closing_staging_is_made_again():
    backend, storage = retrying(lost_answer("open_staging", nth=1), lost_request("close_staging", nth=1))
    await backend.open_staging("s")
    await backend.close_staging("s")
    assert [call.verb for call in storage.calls] == ["open_staging"] * 2 + ["close_staging"] * 2


@on_virtual_time
async def test_a_conditional_put_is_sent_once_since_its_repeat_would_meet_its_own_object():
    backend, storage = retrying(lost_answer("put_new"))
    with pytest.raises(Unavailable, match=r"^the answer was lost$"):
        await backend.put_new("a", b"1")
    assert storage.paths("put_new") == ["a"]


@on_virtual_time
async def test_a_data_file_is_published_once():
    backend, storage = retrying(lost_answer("publish"))
    file = backend.new_file("a", staging="s")
    with pytest.raises(Unavailable):
        file.publish()
    file.abandon()
    assert storage.paths("publish") == ["a"]


@on_virtual_time
async def test_what_the_store_answers_is_not_asked_for_again():
    backend, storage = retrying(refused("delete"))
    with pytest.raises(NotFound):
        await backend.get("a")
    with pytest.raises(NotPermitted):
        await backend.delete(["a"])
    await backend.put_new("b", b"")
    with pytest.raises(AlreadyExists):
        await backend.put_new("b", b"")
    assert len(storage.calls) == 4


@pytest.mark.parametrize("verb", ["get", "get_range", "put", "list", "delete", "open_staging", "close_staging"])
@on_virtual_time
async def test_a_store_that_never_answers_is_an_error_within_half_a_minute(verb):
    backend, storage = retrying(hanging(verb))
    ask = {
        "get": lambda: backend.get("a"),
        "get_range": lambda: backend.get_range("a", 0, 1),
        "put": lambda: backend.put("a", b"1"),
        "list": lambda: listed(backend),
        "delete": lambda: backend.delete(["a"]),
        "open_staging": lambda: backend.open_staging("s"),
        "close_staging": lambda: backend.close_staging("s"),
    }[verb]
    with pytest.raises(Unavailable, match=r"no answer within .* s \(tried \d times in"):
        await ask()
    assert len(storage.calls) >= 2
    assert anyio.current_time() <= 30


@on_virtual_time
async def test_a_delete_of_many_is_made_page_by_page_and_only_the_unanswered_page_again():
    backend, storage = retrying(lost_answer("delete", nth=2))
    paths = [f"m/{number:04}" for number in range(2 * PAGE_COUNT + 5)]
    for path in paths:
        await storage.inner.put(path, b"")
    await backend.delete(paths)
    asked = Counter(len(call.paths) for call in storage.calls)
    assert asked in (Counter({PAGE_COUNT: 3, 5: 1}), Counter({PAGE_COUNT: 2, 5: 2}))  # pages are asked for side by side
    assert await listed(storage.inner) == []


class Breaking(MemoryBackend):
    """Listings lose their answer after so many entries, in turn; the last number is for the rest."""

    def __init__(self, lengths):
        super().__init__()
        self.lengths = list(lengths)
        self.begun_after = []

    async def list(self, directory):
        async for entry in self._from(directory, ""):
            yield entry

    async def _from(self, directory, after):
        self.begun_after.append(after)
        length = self.lengths.pop(0) if self.lengths else None
        count = 0
        for entry in [entry async for entry in super().list(directory) if entry.path > after]:
            if count == length:
                raise Unavailable("the page was lost")
            count += 1
            yield entry
        if length is not None and length >= count:
            raise Unavailable("the last page was lost")


class BreakingAndResuming(Breaking):
    async def list_after(self, directory, after):
        async for entry in self._from(directory, after):
            yield entry


@pytest.mark.parametrize("kind", [Breaking, BreakingAndResuming])
@settings(max_examples=examples(60))
@given(count=st.integers(0, 30), lengths=st.lists(st.integers(0, 40), max_size=8))
def test_a_listing_that_breaks_anywhere_shows_each_entry_once(kind, count, lengths):
    async def main():
        store = kind(lengths)
        paths = [f"m/{number:02}" for number in range(count)]
        for path in paths:
            await store.put(path, b"")
        assert await listed(RetryingBackend(store, Retries()), "m") == paths
        assert len(store.begun_after) == len(lengths) + 1 or not lengths

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


@on_virtual_time
async def test_a_store_that_can_resume_a_listing_is_asked_for_the_rest_only():
    store = BreakingAndResuming([2, 3])
    for name in "abcdefg":
        await store.put(name, b"")
    assert await listed(RetryingBackend(store, Retries())) == list("abcdefg")
    assert store.begun_after == ["", "b", "e"]


@on_virtual_time
async def test_a_long_listing_that_goes_on_is_not_given_up_for_its_many_failures():
    store = BreakingAndResuming([1] * 50)
    paths = [f"{number:03}" for number in range(60)]
    for path in paths:
        await store.put(path, b"")
    assert await listed(RetryingBackend(store, Retries(RetrySettings(attempt_count=2)))) == paths


@on_virtual_time
async def test_a_listing_may_take_longer_than_one_call_as_long_as_pages_come():
    class Slow(MemoryBackend):
        async def list(self, directory):
            async for entry in super().list(directory):
                await anyio.sleep(0.009)
                yield entry

    store = Slow()
    for number in range(3 * PAGE_COUNT):
        await store.put(f"{number:04}", b"")
    assert len(await listed(RetryingBackend(store, Retries()))) == 3 * PAGE_COUNT
    assert anyio.current_time() == pytest.approx(27)


@on_virtual_time
async def test_a_listing_that_is_left_half_way_leaves_nothing_open_below():
    backend, storage = retrying()
    await storage.inner.put("a", b"")
    await storage.inner.put("b", b"")
    entries = backend.list("")
    assert (await anext(entries)).path == "a"
    await entries.aclose()


@on_virtual_time
async def test_it_looks_like_what_it_wraps():
    inner = MeasuredBackend(MemoryBackend(has_staging=True), RequestMeter())
    backend = RetryingBackend(inner, Retries())
    await backend.put("a", b"1")
    assert (backend.url, backend.has_staging, repr(backend)) == ("memory:", True, "<MemoryBackend 1 objects>")
    assert backend.statistics() == inner.statistics()
    found = backend.statistics()
    assert found is not None
    assert found.of("put").count == 1
    assert RetryingBackend(MemoryBackend(), Retries()).statistics() is None
