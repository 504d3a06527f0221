"""Additional promises of stores with rename: a staging directory that closes permanently."""

import anyio
import anyio.to_thread
import pytest

from tallymark.backends import Backend, NotFound, Unavailable, checks
from tallymark.backends.testing.store import STAGING, Peek, StoreTests, promise


class StagingPromises(StoreTests):
    @promise
    async def test_the_store_says_that_it_has_staging(self, backend: Backend) -> None:
        assert backend.has_staging is True

    @promise
    async def test_a_file_cannot_be_begun_without_its_staging_directory(self, backend: Backend, peek: Peek) -> None:
        with pytest.raises(NotFound):
            backend.new_file("a", staging=STAGING)
        await backend.open_staging(STAGING)
        await backend.close_staging(STAGING)
        with pytest.raises(NotFound):
            backend.new_file("a", staging=STAGING)
        assert peek.objects() == {}
        assert list(peek.directories()) == []

    @promise
    async def test_nothing_is_published_once_staging_is_closed(self, backend: Backend, peek: Peek) -> None:
        await checks.closes_staging(backend, [f"p={number}/a" for number in range(3)])
        assert peek.objects() == {}
        assert list(peek.directories()) == []

    @promise
    async def test_what_was_begun_before_a_close_stays_closed_when_staging_is_opened_again(
        self, backend: Backend, peek: Peek
    ) -> None:
        await checks.closes_staging(backend, ["a"], reopens=True)
        await backend.close_staging(STAGING)
        assert peek.objects() == {}

    @promise
    async def test_a_close_beside_publishing_threads_leaves_whole_files_or_none(
        self, backend: Backend, peek: Peek
    ) -> None:
        await backend.open_staging(STAGING)
        published: list[str] = []

        def publish(path: str) -> None:
            try:
                self.write_file_blocking(backend, path, b"rows")
            except NotFound:
                return
            published.append(path)

        async with anyio.create_task_group() as group:
            for number in range(40):
                group.start_soon(anyio.to_thread.run_sync, publish, f"p/{number}")
            await backend.close_staging(STAGING)
        assert peek.objects() == dict.fromkeys(published, b"rows")

    @promise
    async def test_closing_one_staging_directory_leaves_another_open(self, backend: Backend, peek: Peek) -> None:
        other = STAGING.replace("001", "0010")
        await backend.open_staging(STAGING)
        await backend.open_staging(other)
        file = backend.new_file("a", staging=other)
        await backend.close_staging(STAGING)
        file.publish()
        assert peek.objects() == {"a": b""}

    @promise
    async def test_no_file_is_brought_a_second_time(self, backend: Backend, peek: Peek) -> None:
        await backend.open_staging(STAGING)
        file = backend.new_file("a", staging=STAGING)
        file.sink.write(b"rows")
        with pytest.raises(Unavailable):
            file.again("b")
        file.abandon()
        assert peek.objects() == {}
