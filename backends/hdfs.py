"""HDFS as storage: ``hdfs://namenode:port/path`` or ``hdfs://nameservice/path``.

Owns: how the contract's promises are kept on HDFS. An object is written to a scratch file, synced to the disks of its
DataNodes, closed, and renamed to its name: with overwrite for put, without for put_new, which the NameNode decides for
exactly one. A data file grows in its staging directory and is renamed; closing the directory renames it away. So no
file at its name is ever open, and what a dead writer left open is scratch or staged: it is deleted, which needs no
recovery of its lease.

What a rename has shown to one reader a crash of the NameNode may take back for a moment, until its edit log is synced.
The log is one sequence: what the reader writes to the same HDFS then cannot survive without it.
"""

import secrets
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from tallymark.backends.contract import Entry, NewFile, check_path
from tallymark.backends.errors import AlreadyExists, BackendError, InvalidPath, NotFound, Unavailable
from tallymark.backends.hdfs_arrival import Arrival
from tallymark.backends.hdfs_client import HdfsClient, create
from tallymark.backends.hdfs_errors import IsADirectory, NotADirectory, NotEmpty, translated
from tallymark.backends.hdfs_file import StagedFile
from tallymark.backends.options import StorageOptions
from tallymark.backends.retry import Retries
from tallymark.backends.shown import shown
from tallymark.backends.threads import Threads

if TYPE_CHECKING:
    from hdfs_native import Client, FileReader, FileStatus

SCRATCH = ".hoodie/.tallymark/tmp"
"""Where half-written objects live: where no reader of tables looks."""

SCRATCH_AGE_MAX_S = 3600.0
"""A scratch file this much older than a fresh one belongs to a dead writer."""

DELETE_COUNT = 64
"""Files that are deleted within one bound: as many requests as a slow NameNode answers in a few seconds."""

ATTEMPTS = 16
"""How often a directory that others prune is made again. Each attempt loses only to a delete of just that moment."""

SMALL_BYTES = 1 << 20
"""Up to here the reading of an object is not worth a bound of its own."""

SEGMENT_BYTES_MAX = 255
"""The NameNode's default limit (``dfs.namenode.fs-limits.max-component-length``), in UTF-8 bytes."""

_CLOSED = ".closed-"


class HdfsBackend:
    """Objects as files below a root directory, which is created by the first write."""

    has_staging = True

    def __init__(self, client: HdfsClient, root: str, options: StorageOptions, retries: Retries) -> None:
        """``root`` is an absolute path without a slash at its end; "" is the whole file system."""
        self._client = client
        self._root = root
        self._retries = retries
        self._threads = Threads(options.request_count_max)
        self._swept = False

    @property
    def url(self) -> str:
        return f"{self._client.url}{self._root or '/'}"

    async def get(self, path: str) -> bytes:
        return await self._threads.run(self._get, path)

    async def put(self, path: str, data: bytes) -> None:
        await self._threads.run(self._put, path, bytes(data))

    async def put_new(self, path: str, data: bytes) -> None:
        """As the contract's, but that AlreadyExists always means another's object: an unclear rename is found out."""
        arrival = Arrival(self, self._at(SCRATCH), self._at(path), bytes(data))
        try:
            await self._retries.run(lambda: self._threads.run(arrival.attempt), sent=len(data))
        finally:
            arrival.abandon()

    async def list(self, directory: str) -> AsyncIterator[Entry]:
        """As the contract's, directory by directory: in this order of each one's names the paths are sorted."""
        pending: list[Entry | str] = [self._at(directory) if directory else self._root]
        scratch = self._at(SCRATCH)
        while pending:
            found = pending.pop()
            if isinstance(found, str):
                if found != scratch:
                    pending += await self._threads.run(self._entries, found)
            else:
                yield found

    async def delete(self, paths: Sequence[str]) -> None:
        await self._threads.run(self._delete, paths)

    def new_file(self, path: str, *, staging: str) -> NewFile:
        # Not "*.parquet": some readers glob recursively, hidden directories included.
        staged = f"{self._at(staging)}/{secrets.token_hex(12)}.tmp"
        return StagedFile(self._client, staged, self._at(path), self.bring)

    async def open_staging(self, directory: str) -> None:
        await self._threads.run(self._make, self._at(directory))

    async def close_staging(self, directory: str) -> None:
        await self._threads.run(self._close_staging, directory)

    def _at(self, path: str) -> str:
        """Return the absolute path. Raises InvalidPath."""
        return f"{self._root}/{check_segments(path)}"

    def _get(self, path: str) -> bytes:
        target = self._at(path)

        def read(hdfs: "Client") -> "bytes | FileReader":
            file = hdfs.read(target)
            return file.read() if len(file) <= SMALL_BYTES else file

        try:
            found = self._client.call(read, self._told(target))
            if isinstance(found, bytes):
                return found
            return self._client.call(lambda _hdfs: found.read(), self._told(target), sent=len(found))
        except NotADirectory as error:
            raise NotFound(f"{self._told(target)} does not exist: {error}") from error

    def _put(self, path: str, data: bytes) -> None:
        target, scratch, started = self._at(path), self._scratch(), time.monotonic()
        try:
            self.write_scratch(scratch, data)
            if time.monotonic() > started + self._client.bound_s(len(data)):
                raise Unavailable(f"{self._told(target)}: another attempt may be under way by now")
            try:
                self.bring(scratch, target, overwrite=True)
            except NotFound as error:
                raise Unavailable(f"{self._told(target)}: {error}") from error
        except BaseException:
            self.discard(scratch)
            raise

    def write_scratch(self, scratch: str, data: bytes) -> None:
        """On return the bytes are on the disks of their DataNodes, and the file is closed."""

        def write(hdfs: "Client") -> None:
            file = create(hdfs, scratch, create_parent=True)
            if data:
                file.write(data)
            file.hsync()
            file.close()

        try:
            self._client.call(write, self._told(scratch), sent=len(data))
        except (NotFound, AlreadyExists) as error:  # the name is ours alone: an answer to a repeat of the vendor's
            raise Unavailable(str(error)) from error
        if not self._swept:
            self._swept = True
            self._sweep(scratch)

    def _sweep(self, fresh: str) -> None:
        """Delete what dead writers have left."""
        folder = self._at(SCRATCH)
        with suppress(BackendError):
            found = tuple(self._inside(folder))
            now = next(status.modification_time for status in found if status.path == fresh)
            for status in found:
                if status.modification_time < now - SCRATCH_AGE_MAX_S * 1000:
                    self.discard(status.path)

    def bring(self, source: str, target: str, *, overwrite: bool = False) -> None:
        """Rename the whole file to the target, whose directory is made if it is missing.

        Raises:
            NotFound: the source is not there (any more).
            AlreadyExists: the target is, and ``overwrite`` is not said.
        """
        for _ in range(ATTEMPTS):
            try:
                self._client.call(lambda hdfs: hdfs.rename(source, target, overwrite), self._told(target))
            except NotFound:  # the target's directory is missing, or was pruned at this moment
                if not self.exists(source):
                    raise
                self._make(target.rpartition("/")[0])
            except IsADirectory as error:
                if overwrite:
                    raise
                raise AlreadyExists(str(error)) from error
            else:
                return
        raise Unavailable(f"the directory of {self._told(target)} vanishes again and again")

    def exists(self, absolute: str) -> bool:
        try:
            self._status(absolute)
        except (NotFound, NotADirectory):
            return False
        return True

    def _make(self, folder: str) -> None:
        try:
            self._client.call(lambda hdfs: hdfs.mkdirs(folder or "/", 0o755, True), self._told(folder))
        except AlreadyExists as error:
            raise NotADirectory(f"{error}; a file is where a directory is needed; choose another path") from error

    def _entries(self, folder: str) -> Sequence[Entry | str]:
        """Return the files of a directory, and its directories as absolute paths; the first path comes last."""
        try:
            found = self._inside(folder)
        except (NotFound, NotADirectory):
            return []
        entries: list[tuple[str, Entry | str]] = []
        start = len(self._root) + 1
        for status in found:
            path = status.path
            if status.isdir:
                entries.append((f"{path}/", path))
            elif path == folder:  # it is a file
                return []
            else:
                entries.append((path, Entry(path[start:], status.length, status.modification_time / 1000)))
        entries.sort(key=itemgetter(0), reverse=True)
        return [entry for _, entry in entries]

    def _delete(self, paths: Sequence[str]) -> None:
        targets = [self._at(path) for path in paths]
        folders: dict[str, bool] = {}
        for first in range(0, len(targets), DELETE_COUNT):
            page = targets[first : first + DELETE_COUNT]
            found = self._client.call(partial(self._deleted, page), self._told(page[0]))
            for target, was_there in found:
                folder = target.rpartition("/")[0]
                folders[folder] = was_there or folders.get(folder, False)
        for folder in sorted(folders, reverse=True):
            self._prune(folder, is_directory=folders[folder])

    def _deleted(self, targets: Sequence[str], hdfs: "Client") -> Sequence[tuple[str, bool]]:
        """Delete them, one request each; which are gone now, and whether they were there."""
        found = []
        for target in targets:
            with suppress(NotFound, NotADirectory, NotEmpty), translated(self._told(target)):
                found.append((target, hdfs.delete(target, False)))
        return found

    def _prune(self, folder: str, *, is_directory: bool = False) -> None:
        """Delete the directory and those above it, below the root, as far as they are empty.

        That they are is seen to by the NameNode, in the delete itself. That each is a directory is not: it is asked,
        unless it is known, and nobody may put a file where one has just been.
        """
        with suppress(BackendError):
            while len(folder) > len(self._root):
                if is_directory or self._status(folder).isdir:
                    self._remove(folder)
                folder = folder.rpartition("/")[0]

    def _close_staging(self, directory: str) -> None:
        staging = self._at(directory)
        parent = staging.rpartition("/")[0]
        with suppress(NotFound, NotADirectory):
            closed = f"{staging}{_CLOSED}{secrets.token_hex(6)}"
            self._client.call(lambda hdfs: hdfs.rename(staging, closed, False), self._told(staging))
        for left in self._closed(staging):
            self._remove(left, recursive=True)
        self._prune(parent)

    def _closed(self, staging: str) -> Iterator[str]:
        """Yield what this close, or one that a crash interrupted, has renamed."""
        parent = staging.rpartition("/")[0]
        with suppress(NotFound, NotADirectory):
            for status in self._inside(parent):
                if status.isdir and status.path.startswith(staging + _CLOSED):
                    yield status.path

    def _status(self, absolute: str) -> "FileStatus":
        return self._client.call(lambda hdfs: hdfs.get_file_info(absolute), self._told(absolute))

    def _inside(self, folder: str) -> "Iterable[FileStatus]":
        return self._client.call(lambda hdfs: list(hdfs.list_status(folder or "/")), self._told(folder))

    def _remove(self, absolute: str, *, recursive: bool = False) -> None:
        """Absent is fine."""
        self._client.call(lambda hdfs: hdfs.delete(absolute, recursive), self._told(absolute))

    def _scratch(self) -> str:
        return f"{self._at(SCRATCH)}/{secrets.token_hex(12)}"

    def discard(self, scratch: str) -> None:
        """Delete it, if that can be done now; else the next sweep does."""
        with suppress(BackendError):
            self._remove(scratch)

    def _told(self, absolute: str) -> str:
        return f"{self._client.url}{absolute}"

    def __repr__(self) -> str:
        return f"<HdfsBackend {self.url}>"


def parse_hdfs(url: str, rest: str) -> tuple[str, str]:
    """Authority and root of ``//host:port/path``; the path is taken as it is written, as Hadoop does.

    Raises:
        InvalidPath: there is no path, or it is one that HDFS cannot keep.
    """
    authority, slash, path = rest.removeprefix("//").partition("/")
    path = path.rstrip("/")
    if not rest.startswith("//") or not slash or "@" in authority:
        raise InvalidPath(
            f"{shown(url)}: an HDFS URL is such as 'hdfs://namenode:8020/flights' or 'hdfs://nameservice/flights'"
        )
    if path:
        check_segments(path)
    return authority, f"/{path}" if path else ""


def check_segments(path: str) -> str:
    """Return the path itself, if HDFS keeps such names. Raises InvalidPath."""
    for segment in check_path(path).split("/"):
        if rule := _broken_rule(segment):
            raise InvalidPath(f"path {path!r} {rule}; HDFS keeps no such name: choose another")
    return path


def _broken_rule(segment: str) -> str | None:
    if ":" in segment:
        return "has a ':'"
    if segment == ".snapshot":
        return "has a segment '.snapshot'"
    if len(segment.encode()) > SEGMENT_BYTES_MAX:
        return f"has a segment longer than {SEGMENT_BYTES_MAX} bytes"
    return None
