"""What stores without rename do instead of staging: each name is fenced by a put-if-absent."""

from tallymark.backends import Backend
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
