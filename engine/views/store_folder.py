"""Folder for one store of one process, created for that store and never read by another.

A process that dies leaves its folder. A store that is opened beside it removes it: a live process has the lock on the
file in it, and the kernel releases the locks of dead ones. That is reliable within one boot of one kernel, in any
container; a folder of another machine, or of an earlier boot, is left alone.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from tallymark.engine.timeline.writer_identity import WriterIdentity

PREFIX = "tallymark-view-"
_LOCK = "owner.lock"


class StoreFolder:
    """``<parent>/tallymark-view-<process id>-<random>``, until ``remove``."""

    def __init__(self, parent: Path) -> None:
        """Raises OSError."""
        parent.mkdir(parents=True, exist_ok=True)
        self._process = os.getpid()
        self.path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{self._process}-", dir=parent))
        try:
            self._lock = _locked(self.path)
        except OSError:
            shutil.rmtree(self.path, ignore_errors=True)
            raise

    @property
    def disk_bytes(self) -> int:
        """Size of its files, as far as they are visible."""
        total = 0
        for folder, _, names in os.walk(self.path):
            for name in names:
                with suppress(OSError):  # a file may go while we look
                    total += Path(folder, name).stat().st_size
        return total

    def remove(self) -> None:
        """Remove it with its content, unless in a fork of the process that owns it."""
        if os.getpid() == self._process:
            shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def sweep(parent: Path) -> None:
    """Remove the folders of dead processes of this machine."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError), (folder / _LOCK).open("r+") as lock:  # a lock that is held is an OSError too
            if lock.read() == _boot() != "":
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)


def _locked(folder: Path) -> int:
    """Return the lock; its file has its name only once it is locked."""
    begun = folder / f"{_LOCK}.begun"
    lock = os.open(begun, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(lock, _boot().encode("ascii"))
        begun.rename(folder / _LOCK)
    except OSError:
        os.close(lock)
        raise
    return lock


def _boot() -> str:
    """Return the id of the kernel's boot; empty where it is unknown: then nothing is swept."""
    return WriterIdentity.here().boot_id or ""
