"""What a local directory lies on: its file system, by name, and what that is worth knowing for."""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
"""Linux's list of mounts; elsewhere file systems have no name here. Format: proc(5), /proc/pid/mountinfo."""

FREE_BYTES_LEAST = 1_000_000_000
"""Less free room than this is worth a remark: it is some ten data files."""

_KNOWN = {
    "tmpfs": "lies in memory: what is written is gone when the machine stops",
    "ramfs": "lies in memory: what is written is gone when the machine stops",
    "overlay": "is a container's own layer: what is written goes with the container, unless a volume is mounted here",
    "nfs": "is a network's: what a sync promises, its server must keep; mount it 'hard', so that no answer is made up",
    "nfs4": "is a network's: what a sync promises, its server must keep; mount it 'hard', so that no answer is made up",
    "cifs": "is a network's: what a sync promises, its server must keep",
    "9p": "is another machine's: what a sync promises, that machine must keep",
    "virtiofs": "is another machine's: what a sync promises, that machine must keep",
}


@dataclass(frozen=True, slots=True)
class Ground:
    directory: str
    """The nearest directory that exists."""
    file_system: str
    """As the system calls it, such as ``ext4``; "unknown" where it does not say."""
    mount_point: str
    is_read_only: bool
    free_bytes: int | None
    """Room for whoever is not root; None where the file system has no notion of it."""

    @property
    def remarks(self) -> list[str]:
        remarks = []
        if (known := _KNOWN.get(self.file_system)) is not None:
            remarks.append(f"{self.mount_point}: {self.file_system} {known}")
        if self.is_read_only:
            remarks.append(f"{self.mount_point} is mounted read-only")
        if self.free_bytes is not None and self.free_bytes < FREE_BYTES_LEAST:
            remarks.append(f"{self.mount_point} is nearly full: {self.free_bytes / 1e6:,.0f} MB are free")
        return remarks


def ground_of(directory: Path) -> Ground:
    """The file system that the directory lies on, or would lie on."""
    there = next(each for each in (directory, *directory.parents) if each.is_dir())
    mount_point, file_system = _mount(os.path.realpath(there))
    is_read_only = bool(os.statvfs(there).f_flag & os.ST_RDONLY)
    room = shutil.disk_usage(there)
    return Ground(str(there), file_system, mount_point, is_read_only, room.free if room.total else None)


def _mount(path: str) -> tuple[str, str]:
    """Where the file system of a real path is mounted, and its type. Of mounts at one place the last one counts."""
    best = ("/", "unknown")
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return best
    for line in lines:
        before, _, after = line.partition(" - ")
        point, file_system = _unescaped(before.split(" ")[4]), after.split(" ")[0]
        if len(point) >= len(best[0]) and (path + "/").startswith(point.rstrip("/") + "/"):
            best = (point, file_system)
    return best


def _unescaped(text: str) -> str:
    """Blanks and backslashes stand there as a backslash and three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
