"""A store in memory whose puts take as long as told: the part of a store that bounds an ack."""

import anyio

from tallymark.backends.memory import MemoryBackend


class DelayedMemory(MemoryBackend):
    """Each put takes ``put_s`` seconds more than memory does, any number of them at once."""

    def __init__(self, put_s: float) -> None:
        super().__init__()
        self._put_s = put_s

    async def put_new(self, path: str, data: bytes) -> None:
        await anyio.sleep(self._put_s)
        await super().put_new(path, data)
