"""The storage contract on HDFS.

Owns: how the contract's promises are kept on HDFS. An object is written to a scratch file, synced to the disks of its
DataNodes, closed, and renamed to its name: with overwrite for put, without for put_new, of which the NameNode lets
exactly one succeed. A data file grows in its staging directory and is renamed; closing the directory renames it away.
A file at its final name is therefore never open. What a dead writer left open is a scratch or staged file, which is
deleted; that needs no recovery of its lease.

For a moment, until the NameNode's edit log is synced, its crash may revert a rename that a reader has seen. The log is
one sequence: what the reader then writes to the same HDFS cannot survive without the rename.
"""

import secrets
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from tallymark.backends.contract import Entry, NewFile, check_path, check_range
from tallymark.backends.errors import AlreadyExists, BackendError, InvalidPath, NotFound, Unavailable
from tallymark.backends.hdfs.client import HdfsClient, create
from tallymark.backends.hdfs.errors import IsADirectory, NotADirectory, NotEmpty, translated
from tallymark.backends.hdfs.rename_outcome import RenameOutcome
from tallymark.backends.hdfs.staged_file import StagedFile
from tallymark.backends.options import StorageOptions
from tallymark.backends.retry import Retries
from tallymark.backends.shown import shown
from tallymark.backends.threads import Threads

if TYPE_CHECKING:
    from hdfs_native import Client, FileReader, FileStatus

SCRATCH = ".hoodie/.tallymark/tmp"
"""Directory of unfinished objects, which readers of tables ignore."""

SCRATCH_AGE_MAX_S = 3600.0
"""A scratch file this much older than a fresh one belongs to a dead writer."""

DELETE_COUNT = 64
"""Files deleted within one time limit: as many requests as a slow NameNode answers in a few seconds."""

ATTEMPTS = 16
"""How often a directory that other writers prune is made again. An attempt fails only if a delete falls between its
two requests."""

SMALL_BYTES = 1 << 20
"""Objects and ranges up to this size are read within the time limit of the request that opens them."""

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
        return await self._threads.run(self._get, path, 0, sys.maxsize)

    async def get_range(self, path: str, start: int, length: int) -> bytes:
        check_range(start, length)
        return await self._threads.run(self._get, path, start, length)

    async def put(self, path: str, data: bytes) -> None:
        await self._threads.run(self._put, path, bytes(data))

    async def put_new(self, path: str, data: bytes) -> None:
        """Put as the contract's does, but raise AlreadyExists only for another's object: resolve unclear renames."""
        outcome = RenameOutcome(self, self._at(SCRATCH), self._at(path), bytes(data))
        try:
            await self._retries.run(lambda: self._threads.run(outcome.attempt), sent=len(data))
        finally:
            outcome.abandon()

    async def list(self, directory: str) -> AsyncIterator[Entry]:
        """List as the contract's does, directory by directory, in an order of each one's names that sorts the paths."""
        pending: list[Entry | str] = [self._at(directory) if directory else self._root]
        scratch = self._at(SCRATCH)
        while pending:
            found = pending.pop()
            if isinstance(found, str):
                if found != scratch:
                    pending += await self._threads.run(self._entries, found)
            else:
                yield found

    async def folders(self, directory: str) -> Sequence[str]:
        return await self._threads.run(self._folders, self._at(directory) if directory else self._root)

    async def delete(self, paths: Sequence[str]) -> None:
        await self._threads.run(self._delete, paths)

    def new_file(self, path: str, *, staging: str) -> NewFile:
        # Not "*.parquet": some readers glob recursively, hidden directories included.
        staged = f"{self._at(staging)}/{secrets.token_hex(12)}.tmp"
        return StagedFile(self._client, staged, self._at(path), self.rename)

    async def open_staging(self, directory: str) -> None:
        await self._threads.run(self._make, self._at(directory))

    async def close_staging(self, directory: str) -> None:
        await self._threads.run(self._close_staging, directory)

    def _at(self, path: str) -> str:
        """Return the absolute path. Raises InvalidPath."""
        return f"{self._root}/{check_segments(path)}"

    def _get(self, path: str, start: int, length: int) -> bytes:
        target = self._at(path)

        def read(hdfs: "Client") -> "tuple[bytes | FileReader, int]":
            file = hdfs.read(target)
            size = min(length, len(file) - start)
            if size <= 0:  # the vendor's client panics beyond the end
                return b"", 0
            return file.read_range(start, size) if size <= SMALL_BYTES else file, size

        try:
            found, size = self._client.call(read, self._url_of(target))
            if isinstance(found, bytes):
                return found
            return self._client.call(lambda _hdfs: found.read_range(start, size), self._url_of(target), sent=size)
        except NotADirectory as error:
            raise NotFound(f"{self._url_of(target)} does not exist: {error}") from error

    def _put(self, path: str, data: bytes) -> None:
        target, scratch, started = self._at(path), self._scratch(), time.monotonic()
        try:
            self.write_scratch(scratch, data)
            if time.monotonic() > started + self._client.time_limit_s(len(data)):
                raise Unavailable(f"{self._url_of(target)}: another attempt may be in flight by now")
            try:
                self.rename(scratch, target, overwrite=True)
            except NotFound as error:
                raise Unavailable(f"{self._url_of(target)}: {error}") from error
        except BaseException:
            self.discard(scratch)
            raise

    def write_scratch(self, scratch: str, data: bytes) -> None:
        """Write the file, sync it to the disks of its DataNodes, and close it."""

        def write(hdfs: "Client") -> None:
            file = create(hdfs, scratch, create_parent=True)
            if data:
                file.write(data)
            file.hsync()
            file.close()

        try:
            self._client.call(write, self._url_of(scratch), sent=len(data))
        except (NotFound, AlreadyExists) as error:  # the name is unique: an answer to a retry of the vendor's
            raise Unavailable(str(error)) from error
        if not self._swept:
            self._swept = True
            self._sweep(scratch)

    def _sweep(self, fresh: str) -> None:
        """Delete scratch files of dead writers."""
        folder = self._at(SCRATCH)
        with suppress(BackendError):
            found = tuple(self._inside(folder))
            now = next(status.modification_time for status in found if status.path == fresh)
            for status in found:
                if status.modification_time < now - SCRATCH_AGE_MAX_S * 1000:
                    self.discard(status.path)

    def rename(self, source: str, target: str, *, overwrite: bool = False) -> None:
        """Rename the whole file to the target, whose directory is made if it is missing.

        Raises:
            NotFound: the source is missing.
            AlreadyExists: the target exists, and ``overwrite`` is not set.
        """
        for _ in range(ATTEMPTS):
            try:
                self._client.call(lambda hdfs: hdfs.rename(source, target, overwrite), self._url_of(target))
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
        raise Unavailable(f"the directory of {self._url_of(target)} is deleted again and again")

    def exists(self, absolute: str) -> bool:
        try:
            self._status(absolute)
        except (NotFound, NotADirectory):
            return False
        return True

    def _make(self, folder: str) -> None:
        try:
            self._client.call(lambda hdfs: hdfs.mkdirs(folder or "/", 0o755, True), self._url_of(folder))
        except AlreadyExists as error:
            raise NotADirectory(f"{error}; a file is where a directory is needed; choose another path") from error

    def _entries(self, folder: str) -> Sequence[Entry | str]:
        """Return the files of a directory, and its directories as absolute paths; the first path is last."""
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

    def _folders(self, folder: str) -> Sequence[str]:
        try:
            return sorted(status.path.rpartition("/")[2] for status in self._inside(folder) if status.isdir)
        except (NotFound, NotADirectory):
            return []

    def _delete(self, paths: Sequence[str]) -> None:
        targets = [self._at(path) for path in paths]
        folders: dict[str, bool] = {}
        for first in range(0, len(targets), DELETE_COUNT):
            page = targets[first : first + DELETE_COUNT]
            found = self._client.call(partial(self._deleted, page), self._url_of(page[0]))
            for target, existed in found:
                folder = target.rpartition("/")[0]
                folders[folder] = existed or folders.get(folder, False)
        for folder in sorted(folders, reverse=True):
            self._prune(folder, is_directory=folders[folder])

    def _deleted(self, targets: Sequence[str], hdfs: "Client") -> Sequence[tuple[str, bool]]:
        """Delete the files, one request each. Return those that are now absent, and whether each existed."""
        found = []
        for target in targets:
            with suppress(NotFound, NotADirectory, NotEmpty), translated(self._url_of(target)):
                found.append((target, hdfs.delete(target, False)))
        return found

    def _prune(self, folder: str, *, is_directory: bool = False) -> None:
        """Delete the directory and those above it, below the root, as far as they are empty.

        The NameNode checks that they are empty, as part of the delete. It does not check that each is a directory:
        that is looked up first, unless it is known, and no writer may put a file where a directory has just been.
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
            self._client.call(lambda hdfs: hdfs.rename(staging, closed, False), self._url_of(staging))
        for left in self._closed(staging):
            self._remove(left, recursive=True)
        self._prune(parent)

    def _closed(self, staging: str) -> Iterator[str]:
        """Yield the directories that this close, or one that a crash interrupted, has renamed."""
        parent = staging.rpartition("/")[0]
        with suppress(NotFound, NotADirectory):
            for status in self._inside(parent):
                if status.isdir and status.path.startswith(staging + _CLOSED):
                    yield status.path

    def _status(self, absolute: str) -> "FileStatus":
        return self._client.call(lambda hdfs: hdfs.get_file_info(absolute), self._url_of(absolute))

    def _inside(self, folder: str) -> "Iterable[FileStatus]":
        return self._client.call(lambda hdfs: list(hdfs.list_status(folder or "/")), self._url_of(folder))

    def _remove(self, absolute: str, *, recursive: bool = False) -> None:
        """Delete the file or directory, if it exists."""
        self._client.call(lambda hdfs: hdfs.delete(absolute, recursive), self._url_of(absolute))

    def _scratch(self) -> str:
        return f"{self._at(SCRATCH)}/{secrets.token_hex(12)}"

    def discard(self, scratch: str) -> None:
        """Delete the file if the NameNode answers; otherwise a later sweep does."""
        with suppress(BackendError):
            self._remove(scratch)

    def _url_of(self, absolute: str) -> str:
        return f"{self._client.url}{absolute}"

    def __repr__(self) -> str:
        return f"<HdfsBackend {self.url}>"


def parse_hdfs(url: str, rest: str) -> tuple[str, str]:
    """Return authority and root of ``//host:port/path``; the path is taken as it is written, as Hadoop does.

    Raises:
        InvalidPath: the path is missing, or HDFS cannot keep it.
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
            raise InvalidPath(f"path {path!r} {rule}; HDFS does not keep such a name: choose another")
    return path


def _broken_rule(segment: str) -> str | None:
    if ":" in segment:
        return "has a ':'"
    if segment == ".snapshot":
        return "has a segment '.snapshot'"
    if len(segment.encode()) > SEGMENT_BYTES_MAX:
        return f"has a segment longer than {SEGMENT_BYTES_MAX} bytes"
    return None
