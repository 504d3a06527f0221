"""Storage around another one: each request goes through one method, which decides what becomes of it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, BinaryIO

from tallymark.backends.contract import Backend, Entry, NewFile, folders_of


class WrappedBackend:
    """As ``inner``, but for what a subclass makes of requests in ``_through`` and ``_publish``."""

    def __init__(self, inner: Backend) -> None:
        self.inner = inner

    async def _through(self, verb: Any, paths: tuple[str, ...], do: Callable[[], Awaitable[Any]]) -> Any:
        """Carry out a request. ``do`` sends it to the storage inside."""
        return await do()

    def _publish(self, path: str, file: NewFile) -> None:
        file.publish()

    @property
    def url(self) -> str:
        return self.inner.url

    @property
    def has_staging(self) -> bool:
        return self.inner.has_staging

    async def get(self, path: str) -> bytes:
        data: bytes = await self._through("get", (path,), lambda: self.inner.get(path))
        return data

    async def get_range(self, path: str, start: int, length: int) -> bytes:
        data: bytes = await self._through("get_range", (path,), lambda: self.inner.get_range(path, start, length))
        return data

    async def put(self, path: str, data: bytes) -> None:
        await self._through("put", (path,), lambda: self.inner.put(path, data))

    async def put_new(self, path: str, data: bytes) -> None:
        await self._through("put_new", (path,), lambda: self.inner.put_new(path, data))

    async def list(self, directory: str) -> AsyncIterator[Entry]:
        async def gather() -> Sequence[Entry]:
            return [entry async for entry in self.inner.list(directory)]

        for entry in await self._through("list", (directory,), gather):
            yield entry

    async def folders(self, directory: str) -> Sequence[str]:
        names: Sequence[str] = await self._through("folders", (directory,), lambda: folders_of(self.inner, directory))
        return names

    async def delete(self, paths: Sequence[str]) -> None:
        await self._through("delete", tuple(paths), lambda: self.inner.delete(paths))

    async def open_staging(self, directory: str) -> None:
        await self._through("open_staging", (directory,), lambda: self.inner.open_staging(directory))

    async def close_staging(self, directory: str) -> None:
        await self._through("close_staging", (directory,), lambda: self.inner.close_staging(directory))

    def new_file(self, path: str, *, staging: str) -> NewFile:
        return _WrappedFile(self, path, self.inner.new_file(path, staging=staging))


class _WrappedFile:
    def __init__(self, backend: WrappedBackend, path: str, inner: NewFile) -> None:
        self._backend = backend
        self._path = path
        self._inner = inner

    @property
    def sink(self) -> BinaryIO:
        return self._inner.sink

    def publish(self) -> None:
        self._backend._publish(self._path, self._inner)

    def again(self, path: str) -> NewFile:
        return _WrappedFile(self._backend, path, self._inner.again(path))

    def abandon(self) -> None:
        self._inner.abandon()
