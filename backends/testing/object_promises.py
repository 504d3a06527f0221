"""Promises about whole objects and their ranges: get, get_range and put."""

from typing import cast

import anyio
import pytest

from tallymark.backends import Backend, NotFound, checks
from tallymark.backends.testing.store import Peek, StoreTests, promise


class ObjectPromises(StoreTests):
    @promise
    async def test_what_was_put_is_stored_and_got(self, backend: Backend, peek: Peek) -> None:
        await backend.put("a/b", b"one")
        assert peek.objects() == {"a/b": b"one"}
        assert await backend.get("a/b") == b"one"

    @promise
    async def test_a_second_put_replaces_the_first(self, backend: Backend, peek: Peek) -> None:
        await backend.put("a", b"a long first")
        await backend.put("a", b"2")
        assert peek.objects() == {"a": b"2"}
        assert await backend.get("a") == b"2"

    @promise
    async def test_an_object_may_be_empty(self, backend: Backend, peek: Peek) -> None:
        await backend.put("put", b"")
        await backend.put_new("put_new", b"")
        assert peek.objects() == {"put": b"", "put_new": b""}
        assert (await backend.get("put"), await backend.get("put_new")) == (b"", b"")

    @promise
    async def test_every_byte_is_kept_as_it_is(self, backend: Backend, peek: Peek) -> None:
        data = bytes(range(256)) * 1_000 + b"\r\n\r\n"
        await backend.put("put", data)
        await backend.put_new("put_new", data)
        assert peek.objects() == {"put": data, "put_new": data}
        assert (await backend.get("put"), await backend.get("put_new")) == (data, data)

    @promise
    async def test_a_range_has_the_bytes_between_its_ends(self, backend: Backend) -> None:
        data = bytes(range(256)) * 1_000
        await backend.put("a", data)
        await checks.has_ranges(backend, "a", data)

    @promise
    async def test_a_range_ends_with_its_object(self, backend: Backend) -> None:
        await backend.put("a", b"0123")
        await backend.put("empty", b"")
        for path, start, length, data in (
            ("a", 2, 10**15, b"23"),
            ("a", 4, 1, b""),
            ("a", 10**15, 1, b""),
            ("empty", 0, 1, b""),
            ("empty", 1, 9, b""),
        ):
            assert await backend.get_range(path, start, length) == data

    @promise
    async def test_a_range_that_no_object_has_is_a_value_error(self, backend: Backend) -> None:
        await backend.put("a", b"0123")
        for start, length in ((-2, 1), (0, 0), (0, -1)):
            with pytest.raises(ValueError, match=str(length)):
                await backend.get_range("a", start, length)

    @promise
    async def test_a_stored_object_does_not_change_with_the_buffer_it_came_from(self, backend: Backend) -> None:
        buffer = bytearray(b"before")
        await backend.put("a", cast("bytes", buffer))
        buffer[:] = b"after!"
        assert await backend.get("a") == b"before"

    @promise
    async def test_getting_what_is_not_there_is_not_found(self, backend: Backend) -> None:
        await backend.put("a/b", b"")
        for path in ("x", "a/x", "a", "a/b/c", "x/y/z"):
            for read in (backend.get(path), backend.get_range(path, 0, 1)):
                with pytest.raises(NotFound, match=path) as caught:
                    await read
                assert isinstance(caught.value, FileNotFoundError)

    @promise
    async def test_a_get_sees_the_put_that_has_just_returned(self, backend: Backend) -> None:
        with pytest.raises(NotFound):
            await backend.get("a")
        for number in range(10):
            await backend.put("a", b"%d" % number)
            assert await backend.get("a") == b"%d" % number
            assert await backend.get_range("a", 0, 9) == b"%d" % number

    @promise
    async def test_a_reader_beside_replacing_puts_sees_one_whole_put(self, backend: Backend) -> None:
        puts = [bytes([number]) * 100_000 for number in range(12)]
        await backend.put("a", puts[0])
        seen: list[bytes] = []
        ranges: list[bytes] = []

        async def read() -> None:
            for _ in range(30):
                seen.append(await backend.get("a"))
                ranges.append(await backend.get_range("a", 1, 99_990))

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            for data in puts:
                await backend.put("a", data)
        assert len(seen) == 30
        assert set(seen) <= set(puts)
        assert set(ranges) <= {data[1:99_991] for data in puts}

    @promise
    async def test_the_url_opens_the_same_store_and_kind(self, backend: Backend) -> None:
        again = self.reopened(backend)
        assert type(again) is type(backend)
        assert (again.url, again.has_staging) == (backend.url, self.reopened(again).has_staging)
