"""Promises about data files: begun, published or abandoned, and closed out."""

import anyio
import anyio.to_thread
import pytest

from tallymark.backends import AlreadyExists, NotFound
from tests.backends.peek import STAGING, StoreTests, listed
from tests.support.loops import on_both_loops


class DataFilePromises(StoreTests):
    @on_both_loops
    async def test_a_data_file_appears_whole_when_published_and_not_before(self, backend, peek):
        await backend.open_staging(STAGING)
        file = backend.new_file("p=1/a.parquet", staging=STAGING)
        file.sink.write(b"half")
        assert "p=1/a.parquet" not in peek.objects()
        file.sink.write(b" and half")
        file.publish()
        assert peek.objects() == {"p=1/a.parquet": b"half and half"}

    @on_both_loops
    async def test_abandon_forgets_the_bytes_and_does_nothing_after_publish(self, backend, peek):
        await backend.open_staging(STAGING)
        first = backend.new_file("a", staging=STAGING)
        first.sink.write(b"bytes")
        first.abandon()
        first.abandon()
        assert peek.objects() == {}
        second = backend.new_file("a", staging=STAGING)
        second.publish()
        second.abandon()
        assert peek.objects() == {"a": b""}

    @on_both_loops
    async def test_publishing_onto_a_taken_path_is_refused_and_leaves_it_untouched(self, backend, peek):
        await backend.open_staging(STAGING)
        await backend.put("a", b"fence")
        file = backend.new_file("a", staging=STAGING)
        file.sink.write(b"rows")
        with pytest.raises(AlreadyExists, match="a"):
            file.publish()
        assert peek.objects() == {"a": b"fence"}

    @on_both_loops
    async def test_a_published_path_is_taken_for_put_new(self, backend, peek):
        await self.write_file(backend, "a")
        with pytest.raises(AlreadyExists):
            await backend.put_new("a", b"fence")
        assert peek.objects() == {"a": b"rows"}

    @on_both_loops
    async def test_of_a_publish_and_a_fence_for_one_name_exactly_one_wins(self, backend, peek):
        await backend.open_staging(STAGING)
        won: dict[str, list[bytes]] = {}

        async def fence(path: str) -> None:
            try:
                await backend.put_new(path, b"fence")
            except AlreadyExists:
                return
            won.setdefault(path, []).append(b"fence")

        async def publish(path: str) -> None:
            try:
                await anyio.to_thread.run_sync(self.write_file_blocking, backend, path, b"rows")
            except AlreadyExists:
                return
            won.setdefault(path, []).append(b"rows")

        for number in range(20):
            async with anyio.create_task_group() as group:
                group.start_soon(fence, f"p/{number}")
                group.start_soon(publish, f"p/{number}")
        assert len(won) == 20
        assert peek.objects() == {path: winner for path, [winner] in won.items()}

    @on_both_loops
    async def test_files_of_one_name_in_two_partitions_do_not_meet(self, backend, peek):
        await backend.open_staging(STAGING)
        paths = ["p=1/a.parquet", "p=2/a.parquet"]
        files = [backend.new_file(path, staging=STAGING) for path in paths]
        for file, path in zip(files, paths, strict=True):
            file.sink.write(path.encode())
        for file in files:
            file.publish()
        assert peek.objects() == {path: path.encode() for path in paths}

    @on_both_loops
    async def test_opening_and_closing_staging_twice_is_fine_and_leaves_nothing(self, backend, peek):
        for _ in range(2):
            await backend.open_staging(STAGING)
        for _ in range(2):
            await backend.close_staging(STAGING)
        await backend.close_staging("never/opened")
        assert peek.objects() == {}
        assert list(peek.directories()) == []


class StagingPromises(StoreTests):
    """What stores that can rename promise beyond."""

    @on_both_loops
    async def test_a_file_cannot_be_begun_without_its_staging_directory(self, backend, peek):
        with pytest.raises(NotFound):
            backend.new_file("a", staging=STAGING)
        await backend.open_staging(STAGING)
        await backend.close_staging(STAGING)
        with pytest.raises(NotFound):
            backend.new_file("a", staging=STAGING)
        assert peek.objects() == {}
        assert list(peek.directories()) == []

    @on_both_loops
    async def test_nothing_is_published_once_staging_is_closed(self, backend, peek):
        await backend.open_staging(STAGING)
        files = [backend.new_file(f"p={number}/a", staging=STAGING) for number in range(3)]
        for file in files:
            file.sink.write(b"x" * 10_000)
        await backend.close_staging(STAGING)
        for file in files:
            file.sink.write(b"and more")
            with pytest.raises(NotFound):
                file.publish()
            file.abandon()
        assert peek.objects() == {}
        assert list(peek.directories()) == []

    @on_both_loops
    async def test_what_was_begun_before_a_close_stays_closed_when_staging_is_opened_again(self, backend, peek):
        await backend.open_staging(STAGING)
        file = backend.new_file("a", staging=STAGING)
        file.sink.write(b"late")
        await backend.close_staging(STAGING)
        await backend.open_staging(STAGING)
        with pytest.raises(NotFound):
            file.publish()
        file.abandon()
        await backend.close_staging(STAGING)
        assert peek.objects() == {}

    @on_both_loops
    async def test_a_close_beside_publishing_threads_leaves_whole_files_or_none(self, backend, peek):
        await backend.open_staging(STAGING)
        published = []

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

    @on_both_loops
    async def test_closing_one_staging_directory_leaves_another_open(self, backend, peek):
        other = STAGING.replace("001", "0010")
        await backend.open_staging(STAGING)
        await backend.open_staging(other)
        file = backend.new_file("a", staging=other)
        await backend.close_staging(STAGING)
        file.publish()
        assert peek.objects() == {"a": b""}


class PutIfAbsentPromises(StoreTests):
    """What stores without rename do instead."""

    @on_both_loops
    async def test_staging_is_not_needed_and_closing_it_closes_nothing(self, backend, peek):
        file = backend.new_file("a", staging=STAGING)
        await backend.open_staging(STAGING)
        await backend.close_staging(STAGING)
        file.sink.write(b"rows")
        file.publish()
        assert peek.objects() == {"a": b"rows"}

    @on_both_loops
    async def test_a_name_and_names_below_it_can_both_be_taken(self, backend, peek):
        await backend.put("a", b"1")
        await backend.put("a/b", b"2")
        assert peek.objects() == {"a": b"1", "a/b": b"2"}
        assert await listed(backend, "a") == ["a/b"]
