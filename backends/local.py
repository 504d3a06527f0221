"""A directory of this machine as storage, made durable by fsync.

Owns: how the contract's promises are kept on a POSIX file system: a small object is written to a scratch file, synced,
then linked (put_new, which fails where the name is taken) or renamed (put) into place, and its directory synced.
A data file is written in its staging directory and linked into place; closing the staging directory renames it away,
and whoever still writes there has lost the path it would publish from.
"""

import errno
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

import anyio.to_thread

from tallymark.backends.contract import Entry, NewFile, check_path
from tallymark.backends.errors import AlreadyExists, InvalidPath, NotFound, NotPermitted, Unavailable

T = TypeVar("T")

SCRATCH = ".hoodie/.tallymark/tmp"
"""Where half-written objects live: on the root's file system, and where no reader of tables looks."""

SCRATCH_AGE_MAX_S = 3600.0
"""A scratch file this much older than a fresh one belongs to a dead writer. If not, that writer is told Unavailable."""

SINK_BUFFER_BYTES = 1 << 20


class LocalBackend:
    """Objects as files below a root directory, which is created by the first write."""

    has_staging = True

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = Path(root).absolute()
        self._scratch = self._root / SCRATCH
        self._swept = False

    @property
    def url(self) -> str:
        return self._root.as_uri()

    async def get(self, path: str) -> bytes:
        return await _in_thread(self._get, path)

    async def put(self, path: str, data: bytes) -> None:
        await _in_thread(self._put, path, data, Path.replace)

    async def put_new(self, path: str, data: bytes) -> None:
        await _in_thread(self._put, path, data, _link)

    async def list(self, directory: str) -> AsyncIterator[Entry]:
        for entry in await _in_thread(self._entries, directory):
            yield entry

    async def delete(self, paths: Sequence[str]) -> None:
        await _in_thread(self._delete, paths)

    def new_file(self, path: str, *, staging: str) -> NewFile:
        with _translated(path):
            return _StagedFile(self, path, self._at(staging))

    async def open_staging(self, directory: str) -> None:
        await _in_thread(self._open_staging, directory)

    async def close_staging(self, directory: str) -> None:
        await _in_thread(self._close_staging, directory)

    def _at(self, path: str) -> Path:
        return self._root / check_path(path)

    def _get(self, path: str) -> bytes:
        target = self._at(path)
        with _translated(path):
            data = target.read_bytes()
            # Another's link is visible before its directory is synced: nobody may act on what a crash can take back.
            _sync_directory(target.parent)
            return data

    def _put(self, path: str, data: bytes, place: Callable[[Path, Path], object]) -> None:
        target = self._at(path)
        with _translated(path):
            scratch = self._write_scratch(data)
            try:
                _into_place(scratch, target, place)
            finally:
                scratch.unlink(missing_ok=True)
            _sync_directory(target.parent)

    def _write_scratch(self, data: bytes) -> Path:
        _make_directories(self._scratch)
        scratch = self._scratch / secrets.token_hex(12)
        with scratch.open("xb", buffering=0) as file:
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
            os.fsync(file.fileno())
        if not self._swept:
            self._swept = True
            self._sweep(scratch.stat().st_mtime - SCRATCH_AGE_MAX_S)
        return scratch

    def _sweep(self, oldest: float) -> None:
        for left in self._scratch.iterdir():
            with suppress(FileNotFoundError):
                if left.stat().st_mtime < oldest:
                    left.unlink()

    def _entries(self, directory: str) -> Sequence[Entry]:
        top = self._at(directory) if directory else self._root
        with _translated(directory):
            return sorted(self._walk(top), key=lambda entry: entry.path)

    def _walk(self, top: Path) -> Iterator[Entry]:
        pending = [top]
        while pending:
            folder = pending.pop()
            if folder == self._scratch:
                continue
            with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as found:
                for item in found:
                    with suppress(FileNotFoundError):
                        if item.is_dir(follow_symlinks=False):
                            pending.append(folder / item.name)
                        else:
                            facts = item.stat()
                            path = (folder / item.name).relative_to(self._root).as_posix()
                            yield Entry(path, facts.st_size, facts.st_mtime)

    def _delete(self, paths: Sequence[str]) -> None:
        parents = set()
        for path in paths:
            target = self._at(path)
            with _translated(path), suppress(FileNotFoundError, NotADirectoryError):
                target.unlink()
                parents.add(target.parent)
        for parent in parents:
            with _translated(parent.as_posix()):
                _sync_directory(parent)
                self._prune(parent)

    def _prune(self, folder: Path) -> None:
        """Remove directories that have become empty, up to the root: in storage a directory is its objects."""
        while folder != self._root:
            try:
                folder.rmdir()
            except OSError:
                return
            folder = folder.parent

    def _open_staging(self, directory: str) -> None:
        with _translated(directory):
            _make_directories(self._at(directory))

    def _close_staging(self, directory: str) -> None:
        staging = self._at(directory)
        closed = staging.with_name(f"{staging.name}.closed-{secrets.token_hex(6)}")
        with _translated(directory):
            with suppress(FileNotFoundError):
                staging.rename(closed)
                _sync_directory(closed.parent)
            for left in staging.parent.glob(f"{staging.name}.closed-*"):
                shutil.rmtree(left, ignore_errors=True)
            self._prune(staging.parent)

    def __repr__(self) -> str:
        return f"<LocalBackend {self._root}>"


class _StagedFile:
    """A data file below its staging directory, linked to its name when it is whole."""

    def __init__(self, backend: LocalBackend, path: str, staging: Path) -> None:
        self._path = path
        self._target = backend._at(path)
        # Not "*.parquet": some readers glob recursively, hidden directories included.
        self._staged = staging / f"{self._target.name}.tmp"
        self._file = self._staged.open("xb", buffering=SINK_BUFFER_BYTES)

    @property
    def sink(self) -> BinaryIO:
        return self._file

    def publish(self) -> None:
        with _translated(self._path):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            _into_place(self._staged, self._target, _link)
            _sync_directory(self._target.parent)
            self._staged.unlink(missing_ok=True)

    def abandon(self) -> None:
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._staged.unlink(missing_ok=True)


def _link(source: Path, target: Path) -> None:
    os.link(source, target)


def _into_place(source: Path, target: Path, place: Callable[[Path, Path], object]) -> None:
    """Place source at target, whose directory may be missing, or be pruned by another's delete at that moment."""
    for _ in range(16):
        try:
            place(source, target)
        except FileNotFoundError:
            if not source.exists():
                raise
            _make_directories(target.parent)
        else:
            return
    raise Unavailable(f"the directory of {target} vanishes again and again")


def _make_directories(folder: Path) -> None:
    """Like mkdir -p, and each new directory survives a crash."""
    if folder.is_dir():
        return
    _make_directories(folder.parent)
    with suppress(FileExistsError, FileNotFoundError):  # another made it, or pruned its parent: the caller tries again
        folder.mkdir()
        _sync_directory(folder.parent)


def _sync_directory(folder: Path) -> None:
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return  # pruned meanwhile: there is nothing left in it to keep
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


async def _in_thread(function: Callable[..., T], *arguments: object) -> T:
    return await anyio.to_thread.run_sync(function, *arguments, abandon_on_cancel=True)


@contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(f"{path} does not exist ({error.filename})") from error
    except FileExistsError as error:
        raise AlreadyExists(f"{path} exists") from error
    except (PermissionError, NotADirectoryError, IsADirectoryError) as error:
        raise NotPermitted(f"{path}: {error.strerror} ({error.filename}); check rights and path") from error
    except OSError as error:
        raise _other(path, error) from error


def _other(path: str, error: OSError) -> Exception:
    match error.errno:
        case errno.ENAMETOOLONG:
            return InvalidPath(f"path {path!r} has a segment longer than this file system takes; shorten it")
        case errno.EROFS | errno.ENOSPC | errno.EDQUOT:
            return NotPermitted(f"{path}: {error.strerror}; nothing was written")
        case errno.EXDEV | errno.EMLINK | errno.ENOTSUP:
            return NotPermitted(f"{path}: {error.strerror}; a table needs one file system that has hard links")
        case _:
            return Unavailable(f"{path}: {error}")
