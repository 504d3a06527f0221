"""A store in memory whose requests take as long as told: the part of a store that bounds an ack, or a recovery."""

from collections.abc import AsyncIterator

import anyio

from tallymark.backends.contract import Entry
from tallymark.backends.memory import MemoryBackend

PAGE = 1000
"""Objects that one request lists, as on S3 and GCS."""


class DelayedMemory(MemoryBackend):
    """Each put takes ``put_s`` seconds more than memory does, any number of them at once; each get, and each page of a
    listing, ``read_s``.
    """

    def __init__(self, put_s: float, read_s: float = 0.0) -> None:
        super().__init__()
        self.put_s = put_s
        self.read_s = read_s

    async def put_new(self, path: str, data: bytes) -> None:
        if self.put_s:
            await anyio.sleep(self.put_s)
        await super().put_new(path, data)

    async def get(self, path: str) -> bytes:
        if self.read_s:
            await anyio.sleep(self.read_s)
        return await super().get(path)

    async def list(self, directory: str) -> AsyncIterator[Entry]:
        number = 0
        async for entry in super().list(directory):
            if self.read_s and number % PAGE == 0:
                await anyio.sleep(self.read_s)
            number += 1
            yield entry
