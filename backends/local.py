"""A directory of this machine as storage, made durable by fsync.

Owns: how the contract's promises are kept on a POSIX file system: a small object is written to a scratch file, synced,
then linked (put_new, which fails where the name is taken) or renamed (put) into place, and its directory synced
(``local_directories``).
A data file is written in its staging directory and linked into place; closing the staging directory renames it away,
and a process that still writes there has lost the path it would publish from. The error of a disk is reported by
``local_errors``; what a file system does not promise, by ``mounts``.
"""

import io
import os
import secrets
import shutil
import stat
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO

from tallymark.backends.contract import Entry, NewFile, check_path, check_range
from tallymark.backends.errors import NotFound, Unavailable
from tallymark.backends.events import EventLog
from tallymark.backends.local_directories import ATTEMPTS, LocalDirectories
from tallymark.backends.local_errors import translated
from tallymark.backends.local_names import link, replace
from tallymark.backends.mounts import mount_of
from tallymark.backends.threads import Threads

_events = EventLog(__name__)

SCRATCH = ".hoodie/.tallymark/tmp"
"""Directory of unfinished objects: on the root's file system, and ignored by readers of tables."""

SCRATCH_AGE_MAX_S = 3600.0
"""A scratch file this much older than a fresh one belongs to a dead writer. A live writer gets Unavailable."""

SINK_BUFFER_BYTES = 1 << 20

THREADS_MAX = 40
"""Calls of one backend at once: a mount that hangs leaves the threads of others alone. A disk syncs fewer at a time."""

_CLOSED = ".closed-"


class LocalBackend:
    """Objects as files below a root directory, which is created by the first write."""

    has_staging = True

    def __init__(self, root: str | os.PathLike[str], *, scratch: str = SCRATCH) -> None:
        """``scratch``: the directory of unfinished objects, below the root. Another than the default is for tables of
        other writers: it is removed with each deletion, unless an object is being put.
        """
        self._root = Path(root).absolute()
        self._scratch = self._root / check_path(scratch)
        self._keeps_scratch = scratch == SCRATCH
        self._directories = LocalDirectories(self._root)
        self._threads = Threads(THREADS_MAX)
        self._is_met = False

    @property
    def url(self) -> str:
        return self._root.as_uri()

    async def get(self, path: str) -> bytes:
        return await self._threads.run(self._get, path, 0, sys.maxsize)

    async def get_range(self, path: str, start: int, length: int) -> bytes:
        check_range(start, length)
        return await self._threads.run(self._get, path, start, length)

    async def put(self, path: str, data: bytes) -> None:
        await self._threads.run(self._put, path, data, replace)

    async def put_new(self, path: str, data: bytes) -> None:
        await self._threads.run(self._put, path, data, link)

    async def list(self, directory: str) -> AsyncIterator[Entry]:
        for entry in await self._threads.run(self._entries, directory):
            yield entry

    async def folders(self, directory: str) -> Sequence[str]:
        return await self._threads.run(self._folders, directory)

    async def delete(self, paths: Sequence[str]) -> None:
        await self._threads.run(self._delete, paths)

    def new_file(self, path: str, *, staging: str) -> NewFile:
        place = self._at(staging)
        with translated(path, place):
            return _StagedFile(self, path, place)

    async def open_staging(self, directory: str) -> None:
        await self._threads.run(self._open_staging, directory)

    async def close_staging(self, directory: str) -> None:
        await self._threads.run(self._close_staging, directory)

    def _at(self, path: str) -> Path:
        return self._root / check_path(path)

    def _get(self, path: str, start: int, length: int) -> bytes:
        target = self._at(path)
        with translated(path, target):
            self._directories.check(target.parent)
            try:
                with target.open("rb") as file:
                    size = os.fstat(file.fileno()).st_size
                    file.seek(min(start, size))
                    data = file.read(min(length, size))  # it allocates that much
            except (IsADirectoryError, NotADirectoryError) as error:
                raise NotFound(f"{path} does not exist: {error.strerror}") from error
            # Another's link is visible before its directory is synced: callers must not act on what a crash can revert.
            self._directories.keep(target.parent)
            return data

    def _put(self, path: str, data: bytes, place: Callable[[Path, Path], object]) -> None:
        target = self._at(path)
        scratch = self._scratch / secrets.token_hex(12)
        with translated(path, target, missing=Unavailable):
            try:
                self._write_scratch(scratch, data)
                self._name_durably(scratch, target, place)
            finally:
                with suppress(OSError):
                    scratch.unlink(missing_ok=True)

    def _write_scratch(self, scratch: Path, data: bytes) -> None:
        with self._new_scratch(scratch) as file:
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
            os.fsync(file.fileno())
        if not self._is_met:
            self._meet(scratch.stat().st_mtime)
            self._is_met = True

    def _new_scratch(self, scratch: Path) -> io.FileIO:
        for _ in range(ATTEMPTS):
            self._directories.make(self._scratch)
            with suppress(FileNotFoundError):  # removed at this moment by a deletion
                return scratch.open("xb", buffering=0)
        raise Unavailable(f"the directory {self._scratch} is deleted again and again by other writers")

    def _meet(self, now: float) -> None:
        """Log what this disk does not promise, and sweep files of dead writers, before the first write."""
        mount = mount_of(self._root)
        if mount is not None and mount.caution:
            if mount.is_memory:
                _events.info("disk.cautioned", root=self._root, mount=mount, caution=mount.caution)
            else:
                _events.warning("disk.cautioned", root=self._root, mount=mount, caution=mount.caution)
        self._directories.check_syncs(self._scratch)
        self._sweep(now - SCRATCH_AGE_MAX_S)

    def _sweep(self, oldest: float) -> None:
        for left in self._scratch.iterdir():
            with suppress(OSError):
                if left.stat().st_mtime < oldest:
                    left.unlink()

    def _name_durably(self, source: Path, target: Path, place: Callable[[Path, Path], object]) -> None:
        """Place the synced file at the target. On return, or on AlreadyExists, the outcome survives a crash."""
        self._directories.check(target.parent)
        try:
            self._place(source, target, place)
        except FileExistsError:
            self._directories.keep(target.parent)
            raise
        except OSError:
            self._directories.prune(target.parent)
            raise
        self._directories.keep(target.parent)

    def _place(self, source: Path, target: Path, place: Callable[[Path, Path], object]) -> None:
        for _ in range(ATTEMPTS):
            try:
                place(source, target)
            except FileNotFoundError:  # the target's directory is missing, or was pruned at this moment
                if not source.exists():
                    raise
                self._directories.make(target.parent)
            else:
                return
        raise Unavailable(f"the directory of {target} is deleted again and again by other writers")

    def _entries(self, directory: str) -> Sequence[Entry]:
        top = self._at(directory) if directory else self._root
        with translated(directory, top):
            return sorted(self._walk(top), key=attrgetter("path"))

    def _walk(self, top: Path) -> Iterator[Entry]:
        pending = [top]
        while pending:
            folder = pending.pop()
            if folder == self._scratch:
                continue
            below = f"{folder.relative_to(self._root).as_posix()}/" if folder != self._root else ""
            with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as found:
                for item in found:
                    if item.is_dir(follow_symlinks=False):
                        pending.append(folder / item.name)
                        continue
                    try:
                        facts = item.stat()
                    except FileNotFoundError:
                        continue
                    if stat.S_ISREG(facts.st_mode):
                        yield Entry(below + item.name, facts.st_size, facts.st_mtime)

    def _folders(self, directory: str) -> Sequence[str]:
        top = self._at(directory) if directory else self._root
        with translated(directory, top):
            try:
                with os.scandir(top) as found:
                    return sorted(item.name for item in found if item.is_dir(follow_symlinks=False))
            except (FileNotFoundError, NotADirectoryError):
                return []

    def _delete(self, paths: Sequence[str]) -> None:
        targets = {path: self._at(path) for path in paths}
        for path, target in targets.items():
            with translated(path, target), suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                target.unlink()
        folders = {target.parent for target in targets.values()}
        for folder in {self._directories.nearest(folder) for folder in folders}:
            self._directories.keep(folder)
        for folder in folders:
            self._directories.prune(folder)
        if not self._keeps_scratch:
            self._directories.prune(self._scratch)

    def _open_staging(self, directory: str) -> None:
        staging = self._at(directory)
        with translated(directory, staging):
            self._directories.check(staging)
            self._directories.make(staging)

    def _close_staging(self, directory: str) -> None:
        staging = self._at(directory)
        with translated(directory, staging):
            with suppress(FileNotFoundError, NotADirectoryError):
                staging.rename(staging.with_name(f"{staging.name}{_CLOSED}{secrets.token_hex(6)}"))
            self._directories.keep(staging.parent)
            for left in _closed(staging):
                shutil.rmtree(left, onerror=_left_behind)
            self._directories.prune(staging.parent)

    def __repr__(self) -> str:
        return f"<LocalBackend {self._root}>"


class _StagedFile:
    """A data file below its staging directory, linked to its name when it is whole."""

    def __init__(self, backend: LocalBackend, path: str, staging: Path) -> None:
        self._backend = backend
        self._path = path
        self._target = backend._at(path)
        # Not "*.parquet": some readers glob recursively, hidden directories included.
        self._staged = staging / f"{secrets.token_hex(12)}.tmp"
        self._file = io.BufferedWriter(_StagedBytes(path, self._staged), SINK_BUFFER_BYTES)

    @property
    def sink(self) -> BinaryIO:
        return self._file

    def publish(self) -> None:
        try:
            with translated(self._path, self._target):
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()
                self._backend._name_durably(self._staged, self._target, link)
        finally:
            self.abandon()

    def again(self, path: str) -> NewFile:
        raise Unavailable(f"{path}: it is unknown whether the disk stores {self._path}; a second name is not tried")

    def abandon(self) -> None:
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._staged.unlink(missing_ok=True)


class _StagedBytes(io.FileIO):
    """The file, whose errors of a full disk are the contract's."""

    def __init__(self, path: str, staged: Path) -> None:
        super().__init__(staged, "xb")
        self._path = path
        self._staged = staged

    def write(self, data: Any, /) -> int:  # a buffer, which has no type before Python 3.12
        with translated(self._path, self._staged):
            return super().write(data)


def _left_behind(_call: object, path: str, error: Any) -> None:
    """Leave what cannot be removed, such as a foreign file in a closed staging directory."""
    _events.warning("staging.left", path=path, reason=error[1])


def _closed(staging: Path) -> Iterable[Path]:
    """Return what this close, or one that a crash interrupted, has renamed."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return [left for left in staging.parent.iterdir() if left.name.startswith(staging.name + _CLOSED)]
    return []
