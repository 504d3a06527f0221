"""Promises about objects larger than clients send in one part, or keep in memory."""

import hashlib

import anyio.to_thread
import pytest

from tallymark.backends import AlreadyExists, Backend, checks
from tallymark.backends.testing.store import STAGING, Peek, StoreTests, large_promise

_BLOCK_BYTES = 1_000_000


class LargePromises(StoreTests):
    @large_promise
    async def test_a_large_object_is_put_if_absent_whole(self, backend: Backend, peek: Peek) -> None:
        for size in self.large_object_bytes:
            await checks.refuses_a_taken_name(backend, f"m/{size}", first=_data(size), others=[_data(size)])
        assert [entry.size async for entry in backend.list("m")] == sorted(self.large_object_bytes)
        assert _digests(peek) == {f"m/{size}": _digest(_data(size)) for size in self.large_object_bytes}

    @large_promise
    async def test_a_large_object_is_replaced_whole(self, backend: Backend, peek: Peek) -> None:
        size = min(self.large_object_bytes)
        await backend.put("a", b"small")
        await backend.put("a", _data(size))
        assert _digests(peek) == {"a": _digest(_data(size))}
        await backend.put("a", b"small")
        assert peek.objects() == {"a": b"small"}

    @large_promise
    async def test_a_range_of_a_large_object_has_the_bytes_between_its_ends(self, backend: Backend) -> None:
        data = _data(min(self.large_object_bytes))
        await backend.put("a", data)
        await checks.has_ranges(backend, "a", data)

    @large_promise
    async def test_a_large_data_file_is_published_whole_and_nothing_else_is_left(
        self, backend: Backend, peek: Peek
    ) -> None:
        await backend.open_staging(STAGING)
        for size in self.large_object_bytes:
            await anyio.to_thread.run_sync(self.write_file_blocking, backend, f"p/{size}", _data(size))
        await backend.close_staging(STAGING)
        assert _digests(peek) == {f"p/{size}": _digest(_data(size)) for size in self.large_object_bytes}

    @large_promise
    async def test_a_large_data_file_that_finds_its_name_taken_leaves_nothing(
        self, backend: Backend, peek: Peek
    ) -> None:
        await backend.put_new("a", b"fence")
        await backend.open_staging(STAGING)
        with pytest.raises(AlreadyExists):
            self.write_file_blocking(backend, "a", _data(min(self.large_object_bytes)))
        assert peek.objects() == {"a": b"fence"}


def _data(size: int) -> bytes:
    """Return bytes of which no two blocks are equal, so that parts in a wrong order show."""
    blocks = (b"%020d" % number * (_BLOCK_BYTES // 20) for number in range(-(-size // _BLOCK_BYTES)))
    return b"".join(blocks)[:size]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digests(peek: Peek) -> dict[str, str]:
    """Return what is stored, in a form that a failing test can print."""
    return {path: _digest(data) for path, data in peek.objects().items()}
