"""Promises about data files: started, then published or abandoned."""

import anyio
import anyio.to_thread
import pytest

from tallymark.backends import AlreadyExists, Backend, checks
from tallymark.backends.testing.store import STAGING, Peek, StoreTests, promise


class DataFilePromises(StoreTests):
    @promise
    async def test_a_data_file_appears_whole_when_published_and_not_before(self, backend: Backend, peek: Peek) -> None:
        await backend.open_staging(STAGING)
        file = backend.new_file("p=1/a.parquet", staging=STAGING)
        file.sink.write(b"half")
        assert "p=1/a.parquet" not in peek.objects()
        file.sink.write(b" and half")
        file.publish()
        assert peek.objects() == {"p=1/a.parquet": b"half and half"}

    @promise
    async def test_a_sink_takes_what_a_binary_file_takes_and_reports_its_size(
        self, backend: Backend, peek: Peek
    ) -> None:
        await backend.open_staging(STAGING)
        file = backend.new_file("a", staging=STAGING)
        buffer = bytearray(b"bytearray,")
        assert not file.sink.closed
        assert file.sink.tell() == 0
        written = [file.sink.write(part) for part in (b"bytes,", buffer, memoryview(b"a view")[2:], b"")]
        buffer[:] = b"changed..."
        file.sink.flush()
        assert written == [6, 10, 4, 0]
        assert file.sink.tell() == 20
        file.publish()
        assert peek.objects() == {"a": b"bytes,bytearray,view"}

    @promise
    async def test_a_data_file_of_many_small_and_some_large_writes_is_whole(self, backend: Backend, peek: Peek) -> None:
        await backend.open_staging(STAGING)
        parts = [bytes([number % 251]) * (300_000 if number % 500 == 0 else number % 97) for number in range(2_000)]
        file = backend.new_file("a", staging=STAGING)
        for part in parts:
            file.sink.write(part)
        file.publish()
        assert peek.objects() == {"a": b"".join(parts)}

    @promise
    async def test_files_that_grow_at_once_in_several_threads_do_not_mix(self, backend: Backend, peek: Peek) -> None:
        await backend.open_staging(STAGING)

        def write(number: int) -> None:
            file = backend.new_file(f"p={number % 2}/{number}", staging=STAGING)
            for _ in range(100):
                file.sink.write(b"%d," % number * 100)
            file.publish()

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(anyio.to_thread.run_sync, write, number)
        assert peek.objects() == {f"p={number % 2}/{number}": b"%d," % number * 10_000 for number in range(8)}

    @promise
    async def test_abandon_forgets_the_bytes_and_does_nothing_after_publish(self, backend: Backend, peek: Peek) -> None:
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

    @promise
    async def test_publishing_onto_a_taken_path_is_refused_and_leaves_it_untouched(
        self, backend: Backend, peek: Peek
    ) -> None:
        await backend.open_staging(STAGING)
        await checks.publishes_once(backend, "a")
        await backend.put("b", b"fence")
        with pytest.raises(AlreadyExists, match="b"):
            self.write_file_blocking(backend, "b", b"rows")
        assert peek.objects() == {"a": b"rows", "b": b"fence"}

    @promise
    async def test_a_published_path_counts_for_put_new(self, backend: Backend, peek: Peek) -> None:
        await self.write_file(backend, "a")
        await checks.refuses_to_create(backend, "a", b"fence")
        assert peek.objects() == {"a": b"rows"}

    @promise
    async def test_a_published_file_is_listed_and_got_and_deleted_as_any_object(
        self, backend: Backend, peek: Peek
    ) -> None:
        await self.write_file(backend, "p=1/a")
        assert [(entry.path, entry.size) async for entry in backend.list("p=1")] == [("p=1/a", 4)]
        assert await backend.get("p=1/a") == b"rows"
        await backend.delete(["p=1/a"])
        assert peek.objects() == {}

    @promise
    async def test_of_a_publish_and_a_fence_for_one_name_exactly_one_wins(self, backend: Backend, peek: Peek) -> None:
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

        for number in range(self.race_round_count):
            async with anyio.create_task_group() as group:
                group.start_soon(fence, f"p/{number}")
                group.start_soon(publish, f"p/{number}")
        assert len(won) == self.race_round_count
        assert peek.objects() == {path: winner for path, [winner] in won.items()}

    @promise
    async def test_files_of_one_name_in_two_partitions_do_not_meet(self, backend: Backend, peek: Peek) -> None:
        await backend.open_staging(STAGING)
        paths = ["p=1/a.parquet", "p=2/a.parquet"]
        files = [backend.new_file(path, staging=STAGING) for path in paths]
        for file, path in zip(files, paths, strict=True):
            file.sink.write(path.encode())
        for file in files:
            file.publish()
        assert peek.objects() == {path: path.encode() for path in paths}

    @promise
    async def test_opening_and_closing_staging_twice_is_fine_and_leaves_nothing(
        self, backend: Backend, peek: Peek
    ) -> None:
        for _ in range(2):
            await backend.open_staging(STAGING)
        for _ in range(2):
            await backend.close_staging(STAGING)
        await backend.close_staging("never/opened")
        assert peek.objects() == {}
        assert list(peek.directories()) == []
