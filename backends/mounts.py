"""File system of a directory, and the promises that it lacks.

Read from ``/proc/self/mountinfo`` (proc_pid_mountinfo(5)); without it, nothing is known.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")

_NFS = (
    "NFS: promised to the writers of one machine only. On others a directory's names may be known from before, for up "
    "to a minute, so that a listing misses a put and a writer outlives its rollback; and a server that exports 'async' "
    "loses in a crash what it has called durable. Mount it 'hard', so that a server that is away is waited for"
)
_SHARED = "a shared or foreign file system: whether links, renames and syncs keep their promises is its server's affair"
_MEMORY = "memory: nothing here survives a restart of the machine"
_NO_LINKS = "no hard links: a table cannot be written here"

_CAUTIONS: dict[str, str] = {
    **dict.fromkeys(("nfs", "nfs4"), _NFS),
    **dict.fromkeys(("cifs", "smb3", "9p", "afs", "ceph", "lustre", "vboxsf", "virtiofs"), _SHARED),
    **dict.fromkeys(("tmpfs", "ramfs"), _MEMORY),
    **dict.fromkeys(("vfat", "msdos", "exfat"), _NO_LINKS),
}

_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system."""

    point: str
    """Where it is mounted."""
    kind: str
    """Its type as the kernel names it, such as ``ext4`` or ``fuse.sshfs``."""
    source: str
    """The device or the server's directory."""

    @property
    def caution(self) -> str | None:
        """The part of the storage contract that is not promised there; None where all of it is."""
        return _SHARED if self.kind.startswith("fuse") else _CAUTIONS.get(self.kind)

    @property
    def is_memory(self) -> bool:
        return self.kind in ("tmpfs", "ramfs")

    def __str__(self) -> str:
        return f"{self.point} ({self.kind}, {self.source})"


def mount_of(path: str | os.PathLike[str]) -> Mount | None:
    """Return the file system of the path, or the one that it will be created on; None if unknown."""
    try:
        lines = MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    real = Path(os.path.realpath(path))
    found = None
    for mount in map(_parse, lines):
        if mount is not None and real.is_relative_to(mount.point):
            found = mount if found is None or len(mount.point) >= len(found.point) else found
    return found


def _parse(line: str) -> Mount | None:
    """Parse ``36 35 98:0 /root /mount/point options... - type source options``; a later line may hide an
    earlier one.
    """
    before, _, after = line.partition(" - ")
    left, right = before.split(" "), after.split(" ")
    if len(left) < 5 or len(right) < 2:
        return None
    return Mount(_plain(left[4]), right[0], _plain(right[1]))


def _plain(field: str) -> str:
    """Return the text with its octal escapes resolved: spaces, tabs, newlines and backslashes are written in octal."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), field)
