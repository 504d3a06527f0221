"""A local disk that is slow below one folder: each call there holds a thread, as one of the system would."""

import threading
from collections.abc import AsyncIterator
from pathlib import Path

import anyio.to_thread

from tallymark.backends.contract import Entry
from tallymark.backends.local import LocalBackend


class SlowFolder(LocalBackend):
    def __init__(self, root: Path, folder: str, pause_s: float) -> None:
        super().__init__(root)
        self._folder = folder
        self._pause_s = pause_s

    async def get(self, path: str) -> bytes:
        await self._wait(path)
        return await super().get(path)

    async def put(self, path: str, data: bytes) -> None:
        await self._wait(path)
        await super().put(path, data)

    async def put_new(self, path: str, data: bytes) -> None:
        await self._wait(path)
        await super().put_new(path, data)

    async def list(self, directory: str) -> AsyncIterator[Entry]:
        await self._wait(directory)
        async for entry in super().list(directory):
            yield entry

    async def _wait(self, path: str) -> None:
        if path.startswith(self._folder):
            await anyio.to_thread.run_sync(threading.Event().wait, self._pause_s)
