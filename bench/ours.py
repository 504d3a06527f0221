"""Tallymark's backends with the verbs that are measured."""

from collections.abc import Sequence

from tallymark.backends import Backend

STAGING = "staging"


class Ours:
    name = "tallymark"

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    async def open(self) -> None:
        """Before any sample: a store that refuses says so here, in one line of ours and not in its vendor's words."""
        await self.backend.open_staging(STAGING)
        await self.backend.put("probe", b"")

    async def get(self, path: str) -> object:
        return await self.backend.get(path)

    async def put(self, path: str, data: bytes) -> None:
        await self.backend.put(path, data)

    async def put_new(self, path: str, data: bytes) -> None:
        await self.backend.put_new(path, data)

    async def list(self, directory: str) -> int:
        return len([entry async for entry in self.backend.list(directory)])

    async def delete(self, paths: Sequence[str]) -> None:
        await self.backend.delete(paths)

    def data_file(self, path: str, pieces: Sequence[bytes]) -> None:
        """Blocking, as in a task."""
        file = self.backend.new_file(path, staging=STAGING)
        for piece in pieces:
            file.sink.write(piece)
        file.publish()
