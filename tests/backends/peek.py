"""What a conformance test needs of a store: the backend, a look around it, and a way to write a data file."""

from collections.abc import Sequence
from typing import Protocol

import anyio.to_thread
import pytest

from tallymark.backends import Backend

STAGING = ".hoodie/.temp/001/staged"


class Peek(Protocol):
    """A store as its administrator sees it: around the backend."""

    @property
    def backend(self) -> Backend: ...

    def objects(self) -> dict[str, bytes]:
        """All that is stored, path to bytes, unfinished and forgotten things included."""
        ...

    def directories(self) -> Sequence[str]:
        """Directories that hold nothing, where the store has such; its own working directory aside."""
        ...


async def listed(backend: Backend, directory: str = "") -> list[str]:
    return [entry.path async for entry in backend.list(directory)]


class StoreTests:
    """The fixtures of all promises; ``peek`` is given by the backend's own test class."""

    @pytest.fixture
    def peek(self) -> Peek:
        raise AssertionError("a backend's own subclass says what its fresh store is")

    @pytest.fixture
    def backend(self, peek: Peek) -> Backend:
        return peek.backend

    async def write_file(self, backend: Backend, path: str, data: bytes = b"rows") -> None:
        await backend.open_staging(STAGING)
        await anyio.to_thread.run_sync(self.write_file_blocking, backend, path, data)
        await backend.close_staging(STAGING)

    @staticmethod
    def write_file_blocking(backend: Backend, path: str, data: bytes) -> None:
        file = backend.new_file(path, staging=STAGING)
        try:
            file.sink.write(data)
            file.publish()
        finally:
            file.abandon()
