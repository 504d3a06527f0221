"""Store under test: the backend, a view around it, and a way to write a data file."""

import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import anyio
import anyio.to_thread
import pytest

from tallymark.backends import Backend, open_backend
from tallymark.backends.checks import STAGING, listed, put_all, write_data_file
from tallymark.backends.testing.loops import LOOPS, run_on, with_loop

__all__ = ["STAGING", "Peek", "StoreTests", "large_promise", "listed", "promise"]

_LARGE = "is_large_promise"


class Peek(Protocol):
    """A store as its administrator sees it, without the backend. To be subclassed, or implemented as a protocol."""

    backend: Backend
    """The backend under test, on a store that is fresh and empty."""

    def objects(self) -> dict[str, bytes]:
        """Return everything stored, path to bytes, unfinished and leftover objects included."""
        ...

    def directories(self) -> Sequence[str]:
        """Return empty directories, where the store has them, but not its working directory."""
        return ()


class StoreTests:
    """The fixtures and sizes of all promises. The backend's test class defines ``peek``.

    The sizes are the full ones, which take a local disk half a minute. A store behind a slow test server may make them
    smaller, and should state this with its claim to keep the contract.
    """

    loops: Sequence[str] = LOOPS
    """The event loops each promise is tested on, and the first of them alone where it takes long. One is enough for a
    slow store that is called in threads."""
    promise_s_max: float = 300.0
    """Seconds after which one promise counts as broken; it ends a test that hangs, and measures nothing."""
    caller_count: int = 32
    """Callers at once: the writers of a race, and those who fill the store for a large test."""
    race_round_count: int = 100
    """Names raced for. A check-then-act of microseconds is lost in one round of many."""
    listed_object_count: int = 20_000
    """Objects that are listed while others delete them: twenty pages of a store that lists a thousand."""
    deleted_object_count: int = 1_500
    """Objects deleted by one call, among as many absent ones: more than one bulk request of S3 takes, 1,000."""
    refused_paths: Sequence[str] = ()
    """Of the odd names those that this store cannot keep, and refuses as InvalidPath."""
    large_object_bytes: Sequence[int] = (12_000_000, 70_000_000)
    """Sizes above what clients put in one part (5 and 10 MB are usual) and what they keep in memory."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "loop" in metafunc.fixturenames:
            is_large = hasattr(metafunc.function, _LARGE)
            metafunc.parametrize("loop", self.loops[:1] if is_large else self.loops)

    @pytest.fixture
    def peek(self) -> Peek:
        raise AssertionError("a backend's test class defines its fresh store: override the fixture 'peek'")

    @pytest.fixture
    def backend(self, peek: Peek) -> Backend:
        return peek.backend

    def reopened(self, backend: Backend) -> Backend:
        """Return the same store as another process opens it; override it where the URL alone is not enough."""
        return open_backend(backend.url)

    async def write_file(self, backend: Backend, path: str, data: bytes = b"rows") -> None:
        await backend.open_staging(STAGING)
        await anyio.to_thread.run_sync(write_data_file, backend, path, data)
        await backend.close_staging(STAGING)

    write_file_blocking = staticmethod(write_data_file)

    async def fill(self, backend: Backend, paths: Sequence[str]) -> None:
        """Put an object at each path, its path as its bytes."""
        await put_all(backend, paths, limit=self.caller_count)


def promise(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Return an async test method of ``StoreTests``, run on each of its loops."""

    def run(self: StoreTests, *arguments: object, loop: str, **named: object) -> None:
        run_on(loop, functools.partial(test, self, *arguments, **named), s_max=self.promise_s_max)

    return with_loop(run, test)


def large_promise(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Return a promise whose test takes long; it is run on the first loop only."""
    run = promise(test)
    setattr(run, _LARGE, True)
    return run
