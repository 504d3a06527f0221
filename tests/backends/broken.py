"""Stores that break one promise each, as real ones do. The conformance suite has to catch every one of them."""

import io
import itertools
import unicodedata
from collections.abc import AsyncIterator, Sequence
from urllib.parse import unquote

from tallymark.backends import AlreadyExists, Entry, NewFile, NotFound, NotPermitted, Unavailable
from tallymark.backends.contract import check_path
from tallymark.backends.memory import MemoryBackend

PAGE_COUNT = 100


class IgnoresPutIfAbsent(MemoryBackend):
    async def put_new(self, path: str, data: bytes) -> None:
        await self.put(path, data)


class ChecksThenPuts(MemoryBackend):
    async def put_new(self, path: str, data: bytes) -> None:
        if check_path(path) in self._objects:
            raise AlreadyExists(path)
        await self.put(path, data)


class TakesEqualBytesForItsOwn(MemoryBackend):
    async def put_new(self, path: str, data: bytes) -> None:
        try:
            await super().put_new(path, data)
        except AlreadyExists:
            if self._objects[path][0] != data:
                raise


class KeepsDeletedNamesTaken(MemoryBackend):
    async def put_new(self, path: str, data: bytes) -> None:
        if path in self.__dict__.setdefault("_ever", set()):
            raise AlreadyExists(path)
        await super().put_new(path, data)
        self.__dict__["_ever"].add(path)


class KeepsTheCallersBuffer(MemoryBackend):
    async def put(self, path: str, data: bytes) -> None:
        await super().put(path, b"")
        self._objects[path] = (data, self._objects[path][1])


class IncludesTheEndOfARange(MemoryBackend):
    async def get_range(self, path: str, start: int, length: int) -> bytes:
        return await super().get_range(path, start, length + 1)


class RefusesARangeBeyondTheEnd(MemoryBackend):
    async def get_range(self, path: str, start: int, length: int) -> bytes:
        if data := await super().get_range(path, start, length):
            return data
        raise NotPermitted("416 Range Not Satisfiable")


class CountsANegativeStartFromTheEnd(MemoryBackend):
    async def get_range(self, path: str, start: int, length: int) -> bytes:
        return (await self.get(path))[start:][:length]


class ReadsARangeOfNothing(MemoryBackend):
    async def get_range(self, path: str, start: int, length: int) -> bytes:
        return await super().get_range(path, start, length) if path in self._objects else b""


class ReadsARangeInTwoSteps(MemoryBackend):
    async def get_range(self, path: str, start: int, length: int) -> bytes:
        first = await super().get_range(path, start, 1)
        return first + (await super().get_range(path, start + 1, length))[: length - 1]


class KeepsTheRangesItHasRead(MemoryBackend):
    async def get_range(self, path: str, start: int, length: int) -> bytes:
        kept: dict[object, bytes] = self.__dict__.setdefault("_kept", {})
        return kept.setdefault((path, start, length), await super().get_range(path, start, length))


class PutsInTwoSteps(MemoryBackend):
    async def put(self, path: str, data: bytes) -> None:
        await super().put(path, data[: len(data) // 2])
        await super().put(path, data)


class CutsLargeObjects(MemoryBackend):
    async def put_new(self, path: str, data: bytes) -> None:
        await super().put_new(path, data[:1_000_000])


class ListsUnsorted(MemoryBackend):
    async def list(self, directory: str) -> AsyncIterator[Entry]:
        for entry in reversed([entry async for entry in super().list(directory)]):
            yield entry


class ListsByPosition(MemoryBackend):
    """Its pages are counted, so that those after a delete begin too late."""

    async def list(self, directory: str) -> AsyncIterator[Entry]:
        for start in itertools.count(step=PAGE_COUNT):
            page = [entry async for entry in super().list(directory)][start : start + PAGE_COUNT]
            for entry in page:
                yield entry
            if not page:
                return


class ListsWhatItListedBefore(MemoryBackend):
    async def list(self, directory: str) -> AsyncIterator[Entry]:
        seen = self.__dict__.setdefault("_seen", {})
        seen.update({entry.path: entry async for entry in super().list(directory)})
        for path in sorted(path for path in seen if path.startswith(f"{directory}/" if directory else "")):
            yield seen[path]


class ListsByPrefix(MemoryBackend):
    async def list(self, directory: str) -> AsyncIterator[Entry]:
        async for entry in super().list(""):
            if entry.path.startswith(directory):
                yield entry


class ShowsObjectsAsFolders(MemoryBackend):
    async def folders(self, directory: str) -> Sequence[str]:
        prefix = f"{directory}/" if directory else ""
        paths = [entry.path async for entry in self.list(directory)]
        return sorted({path.removeprefix(prefix).partition("/")[0] for path in paths})


class RefusesToDeleteWhatIsAbsent(MemoryBackend):
    async def delete(self, paths: Sequence[str]) -> None:
        if absent := [path for path in paths if path not in self._objects]:
            raise NotFound(absent[0])
        await super().delete(paths)


class DeletesOneRequestOnly(MemoryBackend):
    async def delete(self, paths: Sequence[str]) -> None:
        await super().delete(paths[:1000])


class DecodesNames(MemoryBackend):
    async def put_new(self, path: str, data: bytes) -> None:
        await super().put_new(unquote(path), data)


class ComposesNames(MemoryBackend):
    """As macOS does to file names, the other way round."""

    async def put_new(self, path: str, data: bytes) -> None:
        await super().put_new(unicodedata.normalize("NFC", path), data)


class _OwnFiles(MemoryBackend):
    """Stores whose data files are their own affair."""

    def new_file(self, path: str, *, staging: str) -> NewFile:
        self._opening(staging)
        return _OwnFile(self, check_path(path), staging)

    def keep(self, file: "_OwnFile") -> None:
        self._publish(file.path, file.sink.getvalue(), file.staging, self._opening(file.staging))


class _OwnFile:
    def __init__(self, backend: _OwnFiles, path: str, staging: str) -> None:
        self.backend, self.path, self.staging = backend, path, staging
        self.sink = io.BytesIO()

    def publish(self) -> None:
        self.backend.keep(self)

    def again(self, path: str) -> NewFile:
        if self.backend.has_staging:
            raise Unavailable(path)
        return self.backend.new_file(path, staging=self.staging)  # and the bytes are lost

    def abandon(self) -> None:
        pass


class LosesTheBytesOfASecondName(_OwnFiles):
    pass


class PublishesOverWhatIsThere(_OwnFiles):
    def keep(self, file: _OwnFile) -> None:
        self._opening(file.staging)
        self._objects[file.path] = (file.sink.getvalue(), self._now())


class PublishesAfterAClose(_OwnFiles):
    def keep(self, file: _OwnFile) -> None:
        self._create(file.path, file.sink.getvalue())


class PublishesAfterACloseAndAnOpen(_OwnFiles):
    """A staging directory is known by its name only."""


class BeginsFilesWithoutStaging(_OwnFiles):
    def new_file(self, path: str, *, staging: str) -> NewFile:
        return _OwnFile(self, check_path(path), staging)
