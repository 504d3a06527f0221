"""Promises of stores without rename: each name is fenced by a put-if-absent."""

import pytest

from tallymark.backends import AlreadyExists, Backend
from tallymark.backends.testing.store import STAGING, Peek, StoreTests, listed, promise


class PutIfAbsentPromises(StoreTests):
    @promise
    async def test_the_store_says_that_it_has_no_staging(self, backend: Backend) -> None:
        assert backend.has_staging is False

    @promise
    async def test_staging_is_not_needed_and_closing_it_closes_nothing(self, backend: Backend, peek: Peek) -> None:
        file = backend.new_file("a", staging=STAGING)
        await backend.open_staging(STAGING)
        await backend.close_staging(STAGING)
        file.sink.write(b"rows")
        file.publish()
        assert peek.objects() == {"a": b"rows"}

    @promise
    async def test_nothing_is_stored_before_a_file_is_published(self, backend: Backend, peek: Peek) -> None:
        file = backend.new_file("a", staging=STAGING)
        for _ in range(100):
            file.sink.write(b"x" * 100_000)
        file.sink.flush()
        assert peek.objects() == {}
        file.abandon()
        assert peek.objects() == {}

    @promise
    async def test_a_name_and_names_below_it_can_both_be_taken(self, backend: Backend, peek: Peek) -> None:
        await backend.put("a", b"1")
        await backend.put("a/b", b"2")
        assert peek.objects() == {"a": b"1", "a/b": b"2"}
        assert await listed(backend, "a") == ["a/b"]

    @promise
    async def test_the_same_bytes_go_under_another_name(self, backend: Backend, peek: Peek) -> None:
        file = backend.new_file("a", staging=STAGING)
        file.sink.write(b"rows" * 1000)
        other = file.again("p=1/b").again("p=1/c")
        file.abandon()
        other.publish()
        assert peek.objects() == {"p=1/c": b"rows" * 1000}

    @promise
    async def test_another_name_that_is_taken_is_refused_and_left_untouched(self, backend: Backend, peek: Peek) -> None:
        await backend.put("b", b"fence")
        file = backend.new_file("a", staging=STAGING)
        file.sink.write(b"rows")
        other = file.again("b")
        with pytest.raises(AlreadyExists):
            other.publish()
        file.abandon()
        other.abandon()
        assert peek.objects() == {"b": b"fence"}
