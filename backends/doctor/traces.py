"""Backend that records what is put through it, so that the doctor can remove all of it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

import anyio

from tallymark.backends.checks import InThread, in_thread
from tallymark.backends.contract import Backend, Entry, NewFile
from tallymark.backends.errors import BackendError

SWEEPS = 3
"""How often what is found is deleted: a put whose caller has given up may land after the first."""

SWEEP_PAUSE_S = 0.1


class TracedBackend:
    def __init__(self, inner: Backend, *, in_thread: "InThread[None]" = in_thread) -> None:
        self._inner = inner
        self.in_thread = in_thread
        """Makes the blocking calls of data files."""
        self._paths: dict[str, None] = {}
        """Paths put, in order, each once."""
        self._staging: dict[str, None] = {}

    @property
    def url(self) -> str:
        return self._inner.url

    @property
    def has_staging(self) -> bool:
        return self._inner.has_staging

    async def get(self, path: str) -> bytes:
        return await self._inner.get(path)

    async def get_range(self, path: str, start: int, length: int) -> bytes:
        return await self._inner.get_range(path, start, length)

    async def put(self, path: str, data: bytes) -> None:
        self._paths[path] = None
        await self._inner.put(path, data)

    async def put_new(self, path: str, data: bytes) -> None:
        self._paths[path] = None
        await self._inner.put_new(path, data)

    def list(self, directory: str) -> AsyncIterator[Entry]:
        return self._inner.list(directory)

    async def delete(self, paths: Sequence[str]) -> None:
        await self._inner.delete(paths)

    def new_file(self, path: str, *, staging: str) -> NewFile:
        self._paths[path] = None
        return self._inner.new_file(path, staging=staging)

    async def open_staging(self, directory: str) -> None:
        self._staging[directory] = None
        await self._inner.open_staging(directory)

    async def close_staging(self, directory: str) -> None:
        await self._inner.close_staging(directory)

    async def remove(self) -> Sequence[str]:
        """Remove all that was put, and all else below the root. Returns the paths that are still there, or may be."""
        left: Sequence[str] = list(self._paths)
        for sweep in range(SWEEPS):
            if sweep:
                await anyio.sleep(SWEEP_PAUSE_S)
            with suppress(BackendError):  # the listing shows what is left
                await self._sweep(left)
            try:
                left = [entry.path async for entry in self._inner.list("")]
            except BackendError as error:
                return [f"{path} (maybe: {error})" for path in left]
            if not left:
                break
        return left

    async def _sweep(self, paths: Sequence[str]) -> None:
        await self._inner.delete(paths)
        for staging in self._staging:
            await self._inner.close_staging(staging)

    def __repr__(self) -> str:
        return repr(self._inner)
