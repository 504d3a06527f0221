"""Working directory of the doctor: a random name below the URL, ignored by readers."""

import os
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote_to_bytes

import anyio

from tallymark.backends.contract import Backend
from tallymark.backends.doctor.file_system import LocalFileSystem, file_system_of
from tallymark.backends.errors import BackendError
from tallymark.backends.open import open_backend
from tallymark.backends.options import StorageOptions

PREFIX = ".tallymark-doctor-"
"""Readers of directories ignore names that start with a dot; the name shows where a leftover is from."""

SCRATCH = ".hoodie/.tallymark/tmp"
"""Where stores with staging keep unfinished small objects: the one directory that their deletes do not prune."""

REMOVAL_S_MAX = 2.0
"""Time to remove an empty directory."""


@dataclass(frozen=True, slots=True)
class Practice:
    backend: Backend
    """Its root is the doctor's directory."""
    ground: LocalFileSystem | None
    """Of a local directory."""


@asynccontextmanager
async def practice(url: str, options: StorageOptions | None = None) -> AsyncIterator[Practice]:
    """Yield a working directory below the URL. Directories that were made for it are deleted after the block.

    Raises:
        InvalidPath: as of ``open_backend``.
    """
    above = open_backend(url, options=options)
    if above.url == "memory:":
        yield Practice(above, None)
        return
    name = PREFIX + secrets.token_hex(6)
    below = open_backend(f"{above.url.rstrip('/')}/{name}", options=options)
    folder = _folder(below.url)
    if folder is not None:
        ground = file_system_of(folder)
        try:
            yield Practice(below, ground)
        finally:
            _remove(folder, up_to=Path(ground.directory))
        return
    try:
        yield Practice(below, None)
    finally:
        with anyio.CancelScope(deadline=anyio.current_time() + REMOVAL_S_MAX, shield=True):
            await _prune(above, name)


async def _prune(above: Backend, name: str) -> None:
    """Delete the empty directory: a delete prunes directories, even that of an absent name."""
    if above.has_staging:
        with suppress(BackendError):
            await above.delete([f"{name}/{SCRATCH}/none"])


def _folder(url: str) -> Path | None:
    """Return the directory of this machine that a backend's URL names, if it names one."""
    scheme, _, path = url.partition("://")
    return Path(os.fsdecode(unquote_to_bytes(path))) if scheme == "file" else None


def _remove(folder: Path, *, up_to: Path) -> None:
    """Delete the folder and its contents, then those above it that did not exist before, as far as they are empty."""
    shutil.rmtree(folder, ignore_errors=True)
    for above in folder.parents:
        if above == up_to or up_to not in above.parents:
            return
        with suppress(OSError):
            above.rmdir()
