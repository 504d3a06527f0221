"""Storage whose puts cannot be called back: who stops waiting does not stop what was sent."""

from collections.abc import AsyncIterator, Callable

import anyio
from anyio.abc import TaskGroup

from tallymark.backends.contract import Backend, Entry, NewFile
from tallymark.backends.errors import BackendError


class PostedBackend:
    """Puts are carried by tasks of the network's own, and land ``delay_s(path)`` after they were sent.

    As with a worker thread or a connection, cancelling the caller leaves them on their way.
    """

    def __init__(self, inner: Backend, network: TaskGroup, delay_s: Callable[[str], float]) -> None:
        self.inner = inner
        self.url = inner.url
        self.has_staging = inner.has_staging
        self._network = network
        self._delay_s = delay_s

    async def put(self, path: str, data: bytes) -> None:
        await self._post(path, lambda: self.inner.put(path, data))

    async def put_new(self, path: str, data: bytes) -> None:
        await self._post(path, lambda: self.inner.put_new(path, data))

    async def get(self, path: str) -> bytes:
        return await self.inner.get(path)

    async def list(self, directory: str) -> AsyncIterator[Entry]:
        for entry in [entry async for entry in self.inner.list(directory)]:
            yield entry

    async def delete(self, paths) -> None:
        await self.inner.delete(paths)

    async def open_staging(self, directory: str) -> None:
        await self.inner.open_staging(directory)

    async def close_staging(self, directory: str) -> None:
        await self.inner.close_staging(directory)

    def new_file(self, path: str, *, staging: str) -> NewFile:
        return self.inner.new_file(path, staging=staging)

    async def _post(self, path: str, put) -> None:
        answered = anyio.Event()
        errors: list[BackendError] = []

        async def carry() -> None:
            await anyio.sleep(self._delay_s(path))
            try:
                await put()
            except BackendError as error:
                errors.append(error)
            answered.set()

        self._network.start_soon(carry)
        await answered.wait()
        if errors:
            raise errors[0]
