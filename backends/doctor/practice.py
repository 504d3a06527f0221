"""Where the doctor works: a directory with a random name below the URL, which no reader looks into."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote_to_bytes

from tallymark.backends.contract import Backend
from tallymark.backends.doctor.ground import Ground, ground_of
from tallymark.backends.open import open_backend
from tallymark.backends.options import StorageOptions

PREFIX = ".tallymark-doctor-"
"""Readers of directories leave out names that begin with a dot; whoever finds one left over knows whose it is."""


@dataclass(frozen=True, slots=True)
class Practice:
    backend: Backend
    """Its root is the doctor's own directory."""
    ground: Ground | None
    """Of a local directory."""


@contextmanager
def practice(url: str, options: StorageOptions | None = None) -> Iterator[Practice]:
    """A place to work in, below the URL. Directories that came to be on a disk are gone after the block.

    Raises:
        InvalidPath: as of ``open_backend``.
    """
    backend = open_backend(url, options=options)
    if backend.url == "memory:":
        yield Practice(backend, None)
        return
    name = PREFIX + secrets.token_hex(6)
    below = open_backend(f"{backend.url.rstrip('/')}/{name}", options=options)
    folder = _folder(below.url)
    if folder is None:
        yield Practice(below, None)
        return
    found = ground_of(folder)
    try:
        yield Practice(below, found)
    finally:
        _remove(folder, up_to=Path(found.directory))


def _folder(url: str) -> Path | None:
    """The directory of this machine that a backend's URL names, if it names one."""
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
