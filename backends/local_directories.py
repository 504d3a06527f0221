"""Directories of a local store. In an object store a directory is its objects; on a disk it is a separate entry.

Owns: a directory exists when an object needs it, survives a crash once an object in it has to, and is removed with its
last object. Other callers make and prune the same directories concurrently, in this process and in others.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path

from tallymark.backends.errors import NotPermitted, Unavailable
from tallymark.backends.mounts import mount_of

ATTEMPTS = 16
"""How often a directory that others prune is made again. Each attempt fails only by a delete at just that moment."""

KNOWN_COUNT_MAX = 10_000
"""Maximum number of directories remembered, about 2 MB; forgetting one costs one sync."""


class LocalDirectories:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._below = f"{str(root).rstrip('/')}/"
        self._known: set[Path] = set()
        """Directories whose own entry in their parent was seen to reach the disk."""

    def check(self, folder: Path) -> None:
        """Refuse what cannot be a directory of this store, before anything is named in it.

        Listings do not follow symbolic links, so nothing is put behind one. And a directory that cannot be opened
        cannot be synced, which would be noticed too late.

        Raises:
            NotPermitted: a symbolic link. PermissionError where rights are missing.
        """
        while self._is_below(folder) and folder not in self._known:
            if folder.is_symlink():
                raise NotPermitted(
                    f"{folder} is a symbolic link, which listings do not follow; nothing was done. Put a directory "
                    "there, or mount one"
                )
            with suppress(FileNotFoundError, NotADirectoryError):
                os.close(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))
            folder = folder.parent

    def check_syncs(self, folder: Path) -> None:
        """Refuse a file system that does not sync directories.

        Raises:
            NotPermitted: with the directory.
        """
        try:
            _synced(folder)
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise NotPermitted(
                    f"{folder}: {mount_of(folder)} does not sync directories, so that nothing put there is sure to "
                    "survive a crash; put the table on another file system"
                ) from error

    def make(self, folder: Path) -> None:
        """Create the directory; another process's prune may remove it again while it is empty."""
        for _ in range(ATTEMPTS):
            if folder.is_dir():
                return
            self._make_once(folder)
        for above in (folder, *folder.parents):
            if os.path.lexists(above) and not above.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(above))
        raise Unavailable(f"directory {folder} is deleted again and again by other writers")

    def _make_once(self, folder: Path) -> None:
        if folder.is_dir():
            return
        self._make_once(folder.parent)
        self._known.discard(folder)
        with suppress(FileExistsError, FileNotFoundError):  # another made it, or pruned its parent
            folder.mkdir()
            _synced(folder.parent)
            self._remember(folder)

    def keep(self, folder: Path) -> None:
        """Make changes of names in the directory survive a crash, and so the path to it.

        The path is synced here too: the process that made these directories may not have synced them. Where the
        directory is missing, its nearest ancestor contains the outcome.

        Raises:
            Unavailable: the disk failed; the changes may survive or not.
        """
        try:
            while self._is_below(folder) and not _synced(folder):
                folder = folder.parent
            if folder == self._root:
                _synced(folder)
            while self._is_below(folder) and folder not in self._known:
                _synced(folder.parent)
                self._remember(folder)
                folder = folder.parent
        except OSError as error:
            raise Unavailable(f"directory {folder} could not be synced: {error}") from error

    def nearest(self, folder: Path) -> Path:
        """Return the directory, or where it is missing its nearest ancestor, which contains the outcome of deletes."""
        while self._is_below(folder) and not folder.is_dir():
            folder = folder.parent
        return folder

    def prune(self, folder: Path) -> None:
        """Remove the directory and those above it, up to the root, as far as they are empty."""
        while self._is_below(folder):
            try:
                folder.rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                return
            self._known.discard(folder)
            folder = folder.parent

    def _is_below(self, folder: Path) -> bool:
        return str(folder).startswith(self._below)

    def _remember(self, folder: Path) -> None:
        if len(self._known) >= KNOWN_COUNT_MAX:
            self._known.clear()
        self._known.add(folder)


def _synced(folder: Path) -> bool:
    """Sync the directory. Return False if it is missing."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    return True
