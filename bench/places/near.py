"""Memory, and directories of this machine."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tallymark.backends import InvalidPath, open_backend
from tallymark.backends.mounts import mount_of
from tallymark.bench.folder import new_folder
from tallymark.bench.ours import Ours
from tallymark.bench.peers.dictionary import Dictionary
from tallymark.bench.peers.disk import Disk
from tallymark.bench.places.place import Place

FREE_BYTES_MIN = 512 * 1024 * 1024
"""Without which a directory is left out of the default run: four times the largest sample."""


@asynccontextmanager
async def memory() -> AsyncIterator[Place]:
    """Nothing but Python: what the harness itself and our calls take before there is a store."""
    where = "this process; the floor of the harness"
    yield Place("memory", where, Ours(open_backend("memory:")), Dictionary(), has_hop=False)


@asynccontextmanager
async def disk(parent: Path) -> AsyncIterator[Place]:
    """A new directory below one that exists."""
    if not parent.is_dir():
        raise InvalidPath(f"{parent} is not a directory of this machine; make it first")
    with new_folder(parent) as folder:
        mount = mount_of(parent)
        kind = mount.kind if mount is not None else "unknown file system"
        yield Place("local", f"{kind}, {parent}", Ours(open_backend(folder)), Disk(folder))


def folders() -> list[Path]:
    """The temporary directory, and before it one in memory, where syncing takes no time and our own cost shows."""
    found = [Path("/dev/shm"), Path(tempfile.gettempdir())]  # noqa: S108 the machine's, not a file of ours
    return [folder for folder in found if folder.is_dir() and shutil.disk_usage(folder).free > FREE_BYTES_MIN]
