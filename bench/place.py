"""Where is measured: a store with our backend and a bare library on it, in a folder of its own that goes at the end."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from tallymark.backends import InvalidPath, StorageOptions, open_backend
from tallymark.bench.machine import file_system
from tallymark.bench.ours import Ours
from tallymark.bench.peers import Peer
from tallymark.bench.peers.dictionary import Dictionary
from tallymark.bench.peers.disk import Disk

FOLDER = "tallymark-bench-"
"""Begins the name of what is made on a user's store."""

REMOVAL_S_MAX = 120.0
"""How long removing it may take: some thousand small objects at most."""

LOCAL_BYTES_MIN = 512 * 1024 * 1024
"""Free space without which a directory is left out of the default run: four times the largest sample."""


@dataclass(frozen=True, slots=True)
class Place:
    title: str
    where: str
    """What stands behind it: a file system, a server."""
    ours: Ours
    peer: Peer
    has_hop: bool = True
    """Whether an asynchronous program would call the peer in a thread; else it is a floor, and no bar is held to it."""


@asynccontextmanager
async def memory() -> AsyncIterator[Place]:
    yield Place(
        "memory", "this process; the floor of the harness", Ours(open_backend("memory:")), Dictionary(), has_hop=False
    )


@asynccontextmanager
async def disk(parent: Path) -> AsyncIterator[Place]:
    if not parent.is_dir():
        raise InvalidPath(f"{parent} is no directory of this machine; make it first")
    folder = Path(tempfile.mkdtemp(prefix=FOLDER, dir=parent))
    try:
        where = f"{file_system(parent.resolve())}, {parent}"
        yield Place("local", where, Ours(open_backend(folder)), Disk(folder))
    finally:
        shutil.rmtree(folder)


def local_folders() -> list[Path]:
    """The temporary directory, and before it one in memory, where syncing takes no time and our own cost shows."""
    folders = [Path("/dev/shm"), Path(tempfile.gettempdir())]  # noqa: S108 the machine's, not a file of ours
    return [folder for folder in folders if folder.is_dir() and shutil.disk_usage(folder).free > LOCAL_BYTES_MIN]


def at(url: str, options: StorageOptions) -> AbstractAsyncContextManager[Place]:
    """The store at a URL that a user gives."""
    scheme, colon, rest = url.partition(":")
    match scheme.lower() if colon else "":
        case "memory":
            return memory()
        case "" | "file":
            return disk(Path(unquote(rest.removeprefix("//")) if colon else url))
        case _:
            raise InvalidPath(f"{url!r}: this harness has no library to hold that store against")
