"""The storage contract: whole objects under relative paths, and one way to create a data file.

Owns: what the engine may rely on. Does not own: how a store does it (one module per store beside this one), nor
retries, measuring or faults (wrappers).

Paths are relative to the backend's root, ``/``-separated, without empty, ``.`` or ``..`` segments and without control
characters; ``check_path`` checks them for every backend alike. There are two families of stores. Those with staging
(local disk, HDFS) can rename: a data file grows in a staging directory and is renamed to its name when it is whole.
Those without (object stores) cannot: a data file is stored by one put-if-absent. ``Backend.has_staging`` shows the
family.
"""

import re
from collections.abc import AsyncIterator, Sequence
from typing import BinaryIO, NamedTuple, Protocol, runtime_checkable

from tallymark.backends.errors import InvalidPath, NotFound, NotPermitted

_PLAIN = re.compile(r"[!-\-0-~][ -.0-~]*(?:/[!-\-0-~][ -.0-~]*)*", re.ASCII)
"""Matches most paths: ASCII, and no segment starts with a space or a dot. One match accepts such a path."""

_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")

PATH_BYTES_MAX = 1024
"""The longest path, in UTF-8 bytes: the shortest limit among the stores (S3 and GCS keys)."""


class Entry(NamedTuple):
    """One stored object, as a listing shows it. A tuple: listings make thousands, at a third of a dataclass's cost."""

    path: str
    size: int
    """Size in bytes."""
    modified: float
    """Seconds since the epoch by the store's own clock; compare it only with another ``modified``."""


class NewFile(Protocol):
    """A data file that is being written, used by one thread at a time. Its methods block.

    Nothing is at its path before ``publish``; one of ``publish`` and ``abandon`` ends it, or ``again``.
    """

    @property
    def sink(self) -> BinaryIO:
        """File object for the bytes, in order. Not to be closed by the writer."""
        ...

    def publish(self) -> None:
        """Publish the whole file at its path. On return it survives a crash.

        Raises:
            AlreadyExists: another object is at the path; it is untouched.
            NotFound: the staging directory was closed; nothing was published, and nothing can be.
            Unavailable: the outcome is unknown. Never call it again: take a new name, and ``again`` where there is no
                staging.
        """
        ...

    def again(self, path: str) -> "NewFile":
        """Return a file of the same bytes for another path, after ``publish`` has raised Unavailable, or in its place;
        blocking. The bytes pass to it: this file is over.

        The new path needs another marker that was acked. The outcome at the old path stays unknown; its marker names
        it, and a fence closes it.

        Raises:
            Unavailable: the bytes are not available any more. So it is on stores with staging: a rename without a clear
                outcome is the sign of a failing disk or a dead NameNode, which a second name does not help.
        """
        ...

    def abandon(self) -> None:
        """Drop the bytes. Does nothing after ``publish`` or ``again``."""
        ...


class Backend(Protocol):
    """Whole objects. A crash does not revert a put or delete that has returned."""

    @property
    def url(self) -> str:
        """The root, in the form that ``open_backend`` accepts; contains no secret."""
        ...

    @property
    def has_staging(self) -> bool:
        """True where a data file is renamed into place, False where it arrives by put-if-absent."""
        ...

    async def get(self, path: str) -> bytes:
        """Return the object's bytes, of one whole put; a crash does not revert what was read once.

        Raises NotFound.
        """
        ...

    async def get_range(self, path: str, start: int, length: int) -> bytes:
        """Return ``length`` bytes from ``start`` on of what ``get`` returns, or those up to its end; b"" beyond it.

        Raises NotFound, and ValueError for a negative ``start`` or a ``length`` below 1.
        """
        ...

    async def put(self, path: str, data: bytes) -> None:
        """Create or replace the object. Readers see the old bytes or the new, never a part. Durable on return."""
        ...

    async def put_new(self, path: str, data: bytes) -> None:
        """Create the object; of any number of callers exactly one returns. Durable on return.

        Raises:
            AlreadyExists: the path is taken. After an earlier Unavailable it may be by this caller: compare the bytes.
        """
        ...

    def list(self, directory: str) -> AsyncIterator[Entry]:
        """Yield every object below the directory (``""`` is the root), at any depth, sorted by path.

        Sees every put that had returned before the listing started, and none that a delete had undone before it
        started. Concurrent changes may or may not be seen, including files that grow in a staging directory. A
        directory that does not exist is empty.
        """
        ...

    async def delete(self, paths: Sequence[str]) -> None:
        """Remove the objects; missing ones are ignored. On return all are removed, also after a crash.

        The last one is removed after all others, or by the same request.
        """
        ...

    def new_file(self, path: str, *, staging: str) -> NewFile:
        """Start a data file for ``path``; blocking.

        ``staging`` is the directory given to ``open_staging``; stores without staging ignore it.

        Raises:
            NotFound: the staging directory does not exist, or was closed.
        """
        ...

    async def open_staging(self, directory: str) -> None:
        """Allow data files to be started below ``directory``. Does nothing without staging."""
        ...

    async def close_staging(self, directory: str) -> None:
        """Make sure that no file started below ``directory`` can be published any more. Idempotent.

        Does nothing without staging: there each name has to be fenced by a put-if-absent.
        """
        ...


@runtime_checkable
class FolderListing(Protocol):
    """A backend that can also list one level alone. Optional: only a search for tables below a root needs it."""

    async def folders(self, directory: str) -> Sequence[str]:
        """Return the names of the folders directly below the directory (``""`` is the root), sorted.

        A folder is what has an object below it, at any depth. Stores with directories also show empty ones and their
        own, and follow no symbolic link. A directory that does not exist has none.
        """
        ...


async def folders_of(backend: Backend, directory: str) -> Sequence[str]:
    """Return what ``FolderListing`` does. Raises NotPermitted for a backend that does not have it."""
    if not isinstance(backend, FolderListing):
        raise NotPermitted(f"{backend.url}: this store does not list folders; name each table, not a folder above it")
    return await backend.folders(directory)


async def exists(backend: Backend, path: str) -> bool:
    """Return whether the object exists, by reading it: for small ones."""
    try:
        await backend.get(path)
    except NotFound:
        return False
    return True


def check_path(path: str) -> str:
    """Return the path unchanged, if every store accepts it.

    Raises:
        InvalidPath: with the path, the rule that it breaks and the remedy.
    """
    if len(path) <= PATH_BYTES_MAX and _PLAIN.fullmatch(path):
        return path
    rule = _broken_rule(path)
    if rule:
        raise InvalidPath(f"path {path!r} {rule}; give a relative path of plain segments, such as 'a/b.parquet'")
    return path


def check_range(start: int, length: int) -> None:
    """Raise ValueError if ``get_range`` does not accept them."""
    if start < 0 or length < 1:
        raise ValueError(f"a range of {length} bytes from {start} on; start at 0 or later and read 1 byte or more")


def _broken_rule(path: str) -> str | None:
    if not path:
        return "is empty"
    if path.startswith("/"):
        return "is absolute"
    if any(segment in ("", ".", "..") for segment in path.split("/")):
        return "has an empty, '.' or '..' segment"
    if _CONTROL_CHARACTER.search(path):
        return "has a control character"
    try:
        size = len(path.encode("utf-8"))
    except UnicodeEncodeError:
        return "is not valid Unicode"
    return f"is longer than {PATH_BYTES_MAX} bytes" if size > PATH_BYTES_MAX else None
