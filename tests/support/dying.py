"""A process that dies at a chosen call to storage, as storage sees it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import BinaryIO, TypeVar

from tallymark.backends.contract import Backend, Entry, NewFile

T = TypeVar("T")


class ProcessDied(BaseException):
    """Not an Exception: nothing in a dead process runs any more, so nothing there may handle it."""


class DyingBackend:
    """Storage as one process has it: its ``at``-th call (counted from 1) is the last that storage hears of.

    The process dies before it learns the answer. Without ``at`` it lives, and its calls are counted.
    """

    def __init__(self, inner: Backend, *, at: int | None = None) -> None:
        self.inner = inner
        self.count = 0
        self._at = at

    @property
    def url(self) -> str:
        return self.inner.url

    @property
    def has_staging(self) -> bool:
        return self.inner.has_staging

    @property
    def is_dead(self) -> bool:
        return self._at is not None and self.count >= self._at

    async def get(self, path: str) -> bytes:
        return await self._live(lambda: self.inner.get(path))

    async def put(self, path: str, data: bytes) -> None:
        await self._live(lambda: self.inner.put(path, data))

    async def put_new(self, path: str, data: bytes) -> None:
        await self._live(lambda: self.inner.put_new(path, data))

    async def list(self, directory: str) -> AsyncIterator[Entry]:
        async def gather() -> Sequence[Entry]:
            return [entry async for entry in self.inner.list(directory)]

        for entry in await self._live(gather):
            yield entry

    async def delete(self, paths: Sequence[str]) -> None:
        await self._live(lambda: self.inner.delete(paths))

    async def open_staging(self, directory: str) -> None:
        await self._live(lambda: self.inner.open_staging(directory))

    async def close_staging(self, directory: str) -> None:
        await self._live(lambda: self.inner.close_staging(directory))

    def new_file(self, path: str, *, staging: str) -> NewFile:
        self._refuse_if_dead()
        return _DyingFile(self, self.inner.new_file(path, staging=staging))

    async def _live(self, call: Callable[[], Awaitable[T]]) -> T:
        self._refuse_if_dead()
        self.count += 1
        answer = await call()
        self._refuse_if_dead()  # by this call, or by another that was made meanwhile
        return answer

    def _publish(self, file: NewFile) -> None:
        self._refuse_if_dead()
        self.count += 1
        file.publish()
        self._refuse_if_dead()

    def _refuse_if_dead(self) -> None:
        if self.is_dead:
            raise ProcessDied


class _DyingFile:
    def __init__(self, backend: DyingBackend, inner: NewFile) -> None:
        self._backend = backend
        self._inner = inner

    @property
    def sink(self) -> BinaryIO:
        return self._inner.sink

    def publish(self) -> None:
        self._backend._publish(self._inner)

    def again(self, path: str) -> NewFile:
        return _DyingFile(self._backend, self._inner.again(path))

    def abandon(self) -> None:
        self._inner.abandon()
