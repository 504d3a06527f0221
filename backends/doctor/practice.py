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
from tallymark.backends.doctor.ground import Ground, ground_of
from tallymark.backends.errors import BackendError
from tallymark.backends.open import open_backend
from tallymark.backends.options import StorageOptions

PREFIX = ".tallymark-doctor-"
"""Readers of directories leave out names that begin with a dot; whoever finds one left over knows whose it is."""

SCRATCH = ".hoodie/.tallymark/tmp"
"""Where stores with staging keep small objects in the making: the one directory that no delete of theirs prunes."""

REMOVAL_S_MAX = 2.0
"""Time to remove an empty directory."""


@dataclass(frozen=True, slots=True)
class Practice:
    backend: Backend
    """Its root is the doctor's own directory."""
    ground: Ground | None
    """Of a local directory."""


@asynccontextmanager
async def practice(url: str, options: StorageOptions | None = None) -> AsyncIterator[Practice]:
    """Yield a place to work in, below the URL. Directories that came to be for it are gone after the block.

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
        ground = ground_of(folder)
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
    """A delete leaves no empty directory: where there are directories, that of a name that is not there goes, too."""
    if above.has_staging:
        with suppress(BackendError):
            await above.delete([f"{name}/{SCRATCH}/none"])


def _folder(url: str) -> Path | None:
    """Return the directory of this machine that a backend's URL names, if it names one."""
    scheme, _, path = url.partition("://")
    return Path(os.fsdecode(unquote_to_bytes(path))) if scheme == "file" else None


def _remove(folder: Path, *, up_to: Path) -> None:
    """The folder and all in it; then those above it that were not there before, as far as they are empty."""
    shutil.rmtree(folder, ignore_errors=True)
    for above in folder.parents:
        if above == up_to or up_to not in above.parents:
            return
        with suppress(OSError):
            above.rmdir()
