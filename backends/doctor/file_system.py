"""File system below a local directory, by name, and its known limits."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from tallymark.backends.mounts import Mount, mount_of

FREE_BYTES_LEAST = 1_000_000_000
"""Less free space than this is worth a remark: it is about ten data files."""

_LAYER = "a container's own layer: its files are deleted with the container, unless a volume is mounted here"


@dataclass(frozen=True, slots=True)
class LocalFileSystem:
    directory: str
    """The nearest directory that exists."""
    file_system: str
    """As the system calls it, such as ``ext4``; "unknown" where it reports none."""
    mount_point: str
    is_read_only: bool
    free_bytes: int | None
    """Free space for users other than root; None where the file system does not report it."""

    @property
    def remarks(self) -> list[str]:
        remarks = []
        caution = _LAYER if self.file_system == "overlay" else Mount(self.mount_point, self.file_system, "").caution
        if caution is not None:
            remarks.append(f"{self.mount_point}: {self.file_system}; {caution}")
        if self.is_read_only:
            remarks.append(f"{self.mount_point} is mounted read-only")
        if self.free_bytes is not None and self.free_bytes < FREE_BYTES_LEAST:
            remarks.append(f"{self.mount_point} is nearly full: {self.free_bytes / 1e6:,.0f} MB are free")
        return remarks


def file_system_of(directory: Path) -> LocalFileSystem:
    """Return the file system of the directory, or the one it would be created on."""
    there = next(each for each in (directory, *directory.parents) if each.is_dir())
    mount = mount_of(there) or Mount("/", "unknown", "")
    is_read_only = bool(os.statvfs(there).f_flag & os.ST_RDONLY)
    room = shutil.disk_usage(there)
    return LocalFileSystem(str(there), mount.kind, mount.point, is_read_only, room.free if room.total else None)
