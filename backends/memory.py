"""Reference backend: objects in this process's memory, lost at its end.

It fulfils the contract exactly, in either family, so that tests and simulations need no disk.
"""

import io
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from typing import BinaryIO

import anyio.lowlevel

from tallymark.backends.contract import Entry, NewFile, check_path, check_range
from tallymark.backends.errors import AlreadyExists, NotFound, Unavailable


class MemoryBackend:
    """Objects in a dict. Threads of one process may share it; it cannot travel to another process."""

    def __init__(self, *, has_staging: bool = False, now: Callable[[], float] | None = None) -> None:
        """``now`` is the store's clock; without one, each change of an object counts as one second."""
        self._has_staging = has_staging
        self._objects: dict[str, tuple[bytes, float]] = {}
        self._staging: dict[str, object] = {}
        """Open staging directories, each with its own key: a file started under one opening ends with it."""
        self._lock = threading.Lock()
        self._ticks = 0.0
        self._now = now or self._tick

    url = "memory:"

    @property
    def has_staging(self) -> bool:
        return self._has_staging

    async def get(self, path: str) -> bytes:
        await anyio.lowlevel.checkpoint()
        with self._lock:
            try:
                return self._objects[check_path(path)][0]
            except KeyError:
                raise NotFound(f"{path} does not exist") from None

    async def get_range(self, path: str, start: int, length: int) -> bytes:
        check_range(start, length)
        return (await self.get(path))[start : start + length]

    async def put(self, path: str, data: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        with self._lock:
            self._objects[check_path(path)] = (bytes(data), self._now())

    async def put_new(self, path: str, data: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        with self._lock:
            self._create(path, data)

    async def list(self, directory: str) -> AsyncIterator[Entry]:
        await anyio.lowlevel.checkpoint()
        prefix = check_path(directory) + "/" if directory else ""
        with self._lock:
            found = sorted((path, *stored) for path, stored in self._objects.items() if path.startswith(prefix))
        for path, data, modified in found:
            yield Entry(path, len(data), modified)

    async def folders(self, directory: str) -> Sequence[str]:
        await anyio.lowlevel.checkpoint()
        prefix = check_path(directory) + "/" if directory else ""
        with self._lock:
            below = [path[len(prefix) :].partition("/") for path in self._objects if path.startswith(prefix)]
        return sorted({name for name, slash, _ in below if slash})

    async def delete(self, paths: Sequence[str]) -> None:
        await anyio.lowlevel.checkpoint()
        checked = [check_path(path) for path in paths]
        with self._lock:
            for path in checked:
                self._objects.pop(path, None)

    def new_file(self, path: str, *, staging: str) -> NewFile:
        with self._lock:
            return _MemoryFile(self, check_path(path), staging, self._opening(staging))

    async def open_staging(self, directory: str) -> None:
        await anyio.lowlevel.checkpoint()
        with self._lock:
            self._staging.setdefault(check_path(directory), object())

    async def close_staging(self, directory: str) -> None:
        await anyio.lowlevel.checkpoint()
        with self._lock:
            self._staging.pop(check_path(directory), None)

    def _publish(self, path: str, data: bytes, staging: str, opening: object) -> None:
        with self._lock:
            if self._opening(staging) is not opening:
                raise NotFound(f"{path}: staging directory {staging} was closed and opened again")
            self._create(path, data)

    def _create(self, path: str, data: bytes) -> None:
        if check_path(path) in self._objects:
            raise AlreadyExists(f"{path} exists")
        self._objects[path] = (bytes(data), self._now())

    def _opening(self, staging: str) -> object:
        if not self._has_staging:
            return None
        try:
            return self._staging[staging]
        except KeyError:
            raise NotFound(f"staging directory {staging} does not exist, or was closed") from None

    def _tick(self) -> float:
        self._ticks += 1.0
        return self._ticks

    def __repr__(self) -> str:
        return f"<MemoryBackend {len(self._objects)} objects>"


class _MemoryFile:
    def __init__(self, backend: MemoryBackend, path: str, staging: str, opening: object) -> None:
        self._backend = backend
        self._path = path
        self._staging = staging
        self._opening = opening
        self._bytes = io.BytesIO()

    @property
    def sink(self) -> BinaryIO:
        return self._bytes

    def publish(self) -> None:
        self._backend._publish(self._path, self._bytes.getvalue(), self._staging, self._opening)

    def again(self, path: str) -> NewFile:
        if self._backend.has_staging:
            raise Unavailable(
                f"{path}: this store renames files into place; it does not publish one under a second name"
            )
        other = _MemoryFile(self._backend, check_path(path), self._staging, self._opening)
        other._bytes, self._bytes = self._bytes, other._bytes
        return other

    def abandon(self) -> None:
        self._bytes = io.BytesIO()
